"""Locks that are broken on purpose, each in one way, so that every checker can be seen to say no.

They run on a real Redis and differ from `redis.py` by the one mistake in their name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workloads.locks.lock import Env, Failed, Grant
from workloads.locks.redis import RedisLock, key


class AlwaysYes:
    """Grants to everybody, always with the same token."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        return Grant(name, 1, self._env.now() + ttl_ns, "")

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        return replace(grant, deadline=self._env.now() + ttl_ns)

    def release(self, grant: Grant) -> None: ...

    def close(self) -> None: ...


class _Wrong:
    """A RedisLock in which one verb is replaced."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._link = env.connect(nodes[0], options["node_timeout_ms"] / 1000)
        self._right = RedisLock(env, nodes, options)

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        return self._right.acquire(name, ttl_ns)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        return self._right.extend(grant, ttl_ns)

    def release(self, grant: Grant) -> None:
        self._right.release(grant)

    def close(self) -> None:
        self._link.close()
        self._right.close()


class NoOwnerCheck(_Wrong):
    """Releases with DEL: a late release frees the lock of whoever has it by then."""

    def release(self, grant: Grant) -> None:
        self._link.call("DEL", key(grant.name))


class NoTtl(_Wrong):
    """SET NX without PX: if the holder dies, nobody ever gets the lock again."""

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        secret = self._env.random.randbytes(20).hex()
        if not self._link.call("SET", key(name), secret, "NX"):
            raise Failed("not-granted", "held by another")
        return Grant(name, None, None, secret)
