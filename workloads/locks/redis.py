"""The lock on one Redis server: SET key value NX PX ttl, compare-and-delete in Lua.

As Redis documents it ("Distributed locks with Redis", the single-instance case). With
`token: incr`, a counter on the same server numbers the grants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workloads.locks.lock import Env, Failed, Grant

# Sets KEYS[1] if it is free and, only then, counts the grant in KEYS[2].
ACQUIRE_COUNTED = """
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('incr', KEYS[2])
end
return false
"""

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""

EXTEND = """
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('pexpire', KEYS[1], ARGV[2])
end
return 0
"""


def key(name: str) -> str:
    return f"lock:{name}"


def counter(name: str) -> str:
    return f"token:{name}"


class RedisLock:
    """`options`: token (none, incr), retries, retry_delay_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._options = options
        self._link = env.connect(nodes[0], options["node_timeout_ms"] / 1000)

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        secret = self._env.random.randbytes(20).hex()
        ttl_ms = ttl_ns // 1_000_000
        for attempt in range(self._options["retries"] + 1):
            if attempt:
                delay = self._env.random.uniform(0.5, 1) * self._options["retry_delay_ms"]
                self._env.sleep(delay / 1000)
            begun = self._env.now()
            answer = self._ask(name, secret, ttl_ms)
            if answer:
                token = int(answer) if self._options["token"] == "incr" else None
                return Grant(name, token, begun + ttl_ns, secret)
        raise Failed("not-granted", f"held by another after {self._options['retries'] + 1} tries")

    def _ask(self, name: str, secret: str, ttl_ms: int) -> Any:
        command: tuple[Any, ...] = ("SET", key(name), secret, "NX", "PX", ttl_ms)
        if self._options["token"] == "incr":
            command = ("EVAL", ACQUIRE_COUNTED, 2, key(name), counter(name), secret, ttl_ms)
        self._link.send(*command)
        self._env.reach("replies-in-flight")
        return self._link.receive()

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        begun = self._env.now()
        if not self._link.call(
            "EVAL", EXTEND, 1, key(grant.name), grant.secret, ttl_ns // 1_000_000
        ):
            raise Failed("not-held", "the key is not this holder's any more")
        return replace(grant, deadline=begun + ttl_ns)

    def release(self, grant: Grant) -> None:
        if not self._link.call("EVAL", RELEASE, 1, key(grant.name), grant.secret):
            raise Failed("not-held", "the key is not this holder's any more")

    def close(self) -> None:
        self._link.close()
