"""Locks that are broken on purpose, each in one way, so that every checker can be seen to say no.

They run on a real Redis and differ from `redis.py` by the one mistake in their name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fencepost.workloads.locks.lock import Env, Failed, Grant
from fencepost.workloads.locks.redis import RedisLock, key


class NoLock:
    """Grants to everybody and stands for no lock at all; what it grants carries no token."""

    token: int | None = None

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        secret = self._env.random.randbytes(8).hex()
        return Grant(name, self.token, self._env.now() + ttl_ns, secret)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        return replace(grant, deadline=self._env.now() + ttl_ns)

    def release(self, grant: Grant) -> None: ...

    def close(self) -> None: ...


class AlwaysYes(NoLock):
    """Grants to everybody, always with the same token."""

    token = 1


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


class CheckThenDelete(_Wrong):
    """Releases with GET, then DEL: between the two the lease may end and another may hold it."""

    def release(self, grant: Grant) -> None:
        if self._link.call("GET", key(grant.name)) != grant.secret:
            raise Failed("not-held", "the key is not this holder's any more")
        self._env.reach("between-check-and-delete")
        self._link.call("DEL", key(grant.name))


class EndlessWatchdog(_Wrong):
    """A watchdog that nobody stops, and that extends the lease of whoever holds the lock.

    A dead holder's lock is kept for ever by the watchdogs of the living.
    """

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        super().__init__(env, nodes, options)
        self._watch_link = env.connect(nodes[0], options["node_timeout_ms"] / 1000)
        self._names: dict[str, int] = {}

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        grant = super().acquire(name, ttl_ns)
        first = not self._names
        self._names[name] = ttl_ns
        if first:
            self._env.background(self._run)
        return grant

    def _run(self) -> None:
        while self._names:
            for name, ttl_ns in list(self._names.items()):
                with suppress(Failed):
                    self._watch_link.call("PEXPIRE", key(name), ttl_ns // 1_000_000)
            self._env.sleep(min(self._names.values(), default=0) / 3e9)

    def close(self) -> None:
        self._names.clear()
        super().close()
        self._watch_link.close()


class NoTtl(_Wrong):
    """SET NX without PX: if the holder dies, nobody ever gets the lock again."""

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        secret = self._env.random.randbytes(20).hex()
        if not self._link.call("SET", key(name), secret, "NX"):
            raise Failed("not-granted", "held by another")
        return Grant(name, None, None, secret)
