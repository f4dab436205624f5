"""The lock on one Redis server: SET key value NX PX ttl, compare-and-delete in Lua.

It follows Redis' documentation ("Distributed locks with Redis", the single-instance case). Tokens
are counted on the same server: `incr` numbers the grants; `paired` also gives the lowest grant that
was not released (idelvall under Kleppmann 2016). With `watchdog`, the lease is extended every third
of the TTL while it is held, as Redisson does it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Link
from fencepost.workloads.contract.locktype import LockType, Reference
from fencepost.workloads.contract.option import POLLS, Option
from fencepost.workloads.locks.keepalive import Keepalive
from fencepost.workloads.locks.retry import tries

# Sets KEYS[1] if it is free and, only then, counts the grant in KEYS[2].
ACQUIRE_COUNTED = """
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('incr', KEYS[2])
end
return false
"""

# The same, with the unreleased grants in KEYS[3]; answers {major, minor}.
ACQUIRE_PAIRED = """
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local major = redis.call('incr', KEYS[2])
  redis.call('zadd', KEYS[3], major, major)
  return {major, tonumber(redis.call('zrange', KEYS[3], 0, 0)[1])}
end
return false
"""

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""

# Released are the holder's grant and the lost ones before it. The resource refuses those by now
# whether or not the holder's write was accepted; ARGV[3] says that there was one. Without a write
# only the holder's own is released.
RELEASE_PAIRED = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[3] == '1' then redis.call('zremrangebyscore', KEYS[2], '-inf', ARGV[2])
else redis.call('zrem', KEYS[2], ARGV[2]) end
return redis.call('del', KEYS[1])
"""

EXTEND = """
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('pexpire', KEYS[1], ARGV[2])
end
return 0
"""


@lru_cache  # a lock computes it for each request
def key(name: str) -> str:
    return f"lock:{name}"


def counter(name: str) -> str:
    return f"token:{name}"


def outstanding(name: str) -> str:
    return f"outstanding:{name}"


class RedisLock:
    """`options`: token (none, incr, paired), watchdog, retries, retry_delay_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._options = options
        timeout_s = options["node_timeout_ms"] / 1000
        self.link = env.connect(nodes[0], timeout_s)
        self._watchdog = Keepalive(env) if options.get("watchdog") else None
        # The watchdog's thread needs its own connection.
        self._watch_link = env.connect(nodes[0], timeout_s) if self._watchdog else self.link

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        secret = self._env.random.randbytes(20).hex()
        ttl_ms = ttl_ns // 1_000_000
        for _ in tries(self._env, self._options):
            begun = self._env.now()
            answer = self._ask(name, secret, ttl_ms)
            if answer:
                grant = self._granted(Grant(name, None, begun + ttl_ns, secret), answer)
                self._watch(grant, ttl_ns)
                return grant
        raise Failed("not-granted", f"held by another after {self._options['retries'] + 1} tries")

    def _ask(self, name: str, secret: str, ttl_ms: int) -> Any:
        command: tuple[Any, ...] = ("SET", key(name), secret, "NX", "PX", ttl_ms)
        keys = (key(name), counter(name), outstanding(name))
        if self._options["token"] == "incr":
            command = ("EVAL", ACQUIRE_COUNTED, 2, *keys[:2], secret, ttl_ms)
        elif self._options["token"] == "paired":
            command = ("EVAL", ACQUIRE_PAIRED, 3, *keys, secret, ttl_ms)
        self.link.send(*command)
        self._env.failpoint("replies-in-flight")
        return self.link.receive()

    def _granted(self, grant: Grant, answer: Any) -> Grant:
        match self._options["token"]:
            case "incr":
                return replace(grant, token=int(answer))
            case "paired":
                return replace(grant, token=int(answer[0]), minor=int(answer[1]))
        return grant

    def _watch(self, grant: Grant, ttl_ns: int) -> None:
        if self._watchdog is not None:
            assert grant.deadline is not None
            self._watchdog.watch(
                grant.secret, ttl_ns, grant.deadline, lambda: self._longer(grant, ttl_ns)
            )

    def _longer(self, grant: Grant, ttl_ns: int) -> int:
        return self._extend(self._watch_link, grant, ttl_ns)

    def _extend(self, link: Link, grant: Grant, ttl_ns: int) -> int:
        begun = self._env.now()
        if not link.call("EVAL", EXTEND, 1, key(grant.name), grant.secret, ttl_ns // 1_000_000):
            raise Failed("not-held", "the key is not this holder's any more")
        return begun + ttl_ns

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        return replace(grant, deadline=self._extend(self.link, grant, ttl_ns))

    def release(self, grant: Grant) -> None:
        if self._watchdog is not None:
            self._watchdog.forget(grant.secret)
        command: tuple[Any, ...] = ("EVAL", RELEASE, 1, key(grant.name), grant.secret)
        if self._options["token"] == "paired":
            keys = (key(grant.name), outstanding(grant.name))
            settled = int(grant.settled)
            command = ("EVAL", RELEASE_PAIRED, 2, *keys, grant.secret, grant.token, settled)
        if not self.link.call(*command):
            raise Failed("not-held", "the key is not this holder's any more")

    def close(self) -> None:
        if self._watchdog is not None:
            self._watchdog.close()
            self._watch_link.close()
        self.link.close()


LOCK = LockType(
    name="redis",
    what="one Redis server: SET NX PX, compare-and-delete in Lua",
    make=RedisLock,
    servers=1,
    options={
        "token": Option(
            "none",
            ("none", "incr", "paired"),
            what="INCR together with the SET; paired: with the lowest grant not given back",
        ),
        "watchdog": Option(
            False, (True, False), what="extend every third of the TTL while it is held"
        ),
        **POLLS,
    },
    promises={"true_refusals": True},
    renews="watchdog",
    reference=Reference(options={"token": "incr"}),
)
