"""Deliberately broken locks, each with one mistake, so that every checker can be seen to say no.

They run on real servers and differ from the lock that they are made of by the mistake in their
name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Link, Lock
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import POLLS, Option
from fencepost.workloads.locks import zookeeper
from fencepost.workloads.locks.redis import RedisLock, key
from fencepost.workloads.locks.zookeeper import ZooKeeperLock


@dataclass(frozen=True)
class NoLock:
    """Grants every request, always with the same token, and so is no lock at all."""

    env: Env
    token: int | None = None

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        secret = self.env.random.randbytes(8).hex()
        return Grant(name, self.token, self.env.now() + ttl_ns, secret)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        return replace(grant, deadline=self.env.now() + ttl_ns)

    def release(self, grant: Grant) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Altered:
    """A lock with one verb replaced, and a function that closes the replacement's resources."""

    right: Lock
    wrong_acquire: Callable[[str, int], Grant] | None = None
    wrong_release: Callable[[Grant], None] | None = None
    links: Sequence[Link] = field(default=())

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        return (self.wrong_acquire or self.right.acquire)(name, ttl_ns)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        return self.right.extend(grant, ttl_ns)

    def release(self, grant: Grant) -> None:
        (self.wrong_release or self.right.release)(grant)

    def close(self) -> None:
        for link in self.links:
            link.close()
        self.right.close()


def no_lock(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> Lock:
    return NoLock(env)


def always_yes(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> Lock:
    return NoLock(env, token=1)


def no_owner_check(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> Lock:
    """Release without an owner check: a late release frees another holder's lock."""
    link = _link(env, nodes, options)

    def release(grant: Grant) -> None:
        link.call("DEL", key(grant.name))

    return Altered(RedisLock(env, nodes, options), wrong_release=release, links=[link])


def check_then_delete(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> Lock:
    """Release in two steps: between the GET and the DEL the lease may expire and another client be
    granted the lock."""
    link = _link(env, nodes, options)

    def release(grant: Grant) -> None:
        if link.call("GET", key(grant.name)) != grant.secret:
            raise Failed("not-held", "the key is not this holder's any more")
        env.failpoint("between-check-and-delete")
        link.call("DEL", key(grant.name))

    return Altered(RedisLock(env, nodes, options), wrong_release=release, links=[link])


def no_ttl(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> Lock:
    """Acquire without an expiry: if the holder dies, the lock is never granted again."""
    link = _link(env, nodes, options)

    def acquire(name: str, ttl_ns: int) -> Grant:
        secret = env.random.randbytes(20).hex()
        if not link.call("SET", key(name), secret, "NX"):
            raise Failed("not-granted", "held by another")
        return Grant(name, None, None, secret)

    right = RedisLock(env, nodes, {**options, "token": "none"})
    return Altered(right, wrong_acquire=acquire, links=[link])


class EndlessWatchdog:
    """A watchdog that never stops, and extends the lease of any holder.

    The watchdogs of live clients keep a dead holder's lock for ever.
    """

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._link = _link(env, nodes, options)
        self._right = RedisLock(env, nodes, options)
        self._names: dict[str, int] = {}

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        grant = self._right.acquire(name, ttl_ns)
        first = not self._names
        self._names[name] = ttl_ns
        if first:
            self._env.background(self._run)
        return grant

    def _run(self) -> None:
        while self._names:
            for name, ttl_ns in list(self._names.items()):
                with suppress(Failed):
                    self._link.call("PEXPIRE", key(name), ttl_ns // 1_000_000)
            self._env.sleep(min(self._names.values(), default=0) / 3e9)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        return self._right.extend(grant, ttl_ns)

    def release(self, grant: Grant) -> None:
        self._right.release(grant)

    def close(self) -> None:
        self._names.clear()
        self._right.close()
        self._link.close()


def herd(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> Lock:
    """Wake all waiters at each release: the herd effect that ZooKeeper's recipe warns of."""
    return ZooKeeperLock(env, nodes, options, watched=lambda queue, place: queue[0])


def _link(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> Link:
    return env.connect(nodes[0], options["node_timeout_ms"] / 1000)


_TOKEN = Option("none", ("none", "incr"), what="INCR together with the SET")

NONE = LockType(
    name="none",
    what="no lock at all: what compare-and-set achieves without one",
    make=no_lock,
    servers=1,
    sound=False,
)
ALWAYS_YES = LockType(
    name="broken-always-yes",
    what="broken on purpose: grants every request, always token 1",
    make=always_yes,
    servers=1,
    sound=False,
    options={"token": Option("one", ("one",)), **POLLS},
)
NO_OWNER_CHECK = LockType(
    name="broken-no-owner-check",
    what="broken on purpose: releases with DEL, whatever client holds the lock by then",
    make=no_owner_check,
    servers=1,
    sound=False,
    options={"token": _TOKEN, **POLLS},
)
CHECK_THEN_DELETE = replace(
    NO_OWNER_CHECK,
    name="broken-check-then-delete",
    what="broken on purpose: releases with GET, then DEL, in two steps",
    make=check_then_delete,
    failpoints=("between-check-and-delete",),
)
NO_TTL = LockType(
    name="broken-no-ttl",
    what="broken on purpose: SET NX without an expiry",
    make=no_ttl,
    servers=1,
    sound=False,
    options=POLLS,
    # It has no expiry to extend, and PEXPIRE would give it one.
    extends=False,
)
ENDLESS_WATCHDOG = replace(
    NO_OWNER_CHECK,
    name="broken-endless-watchdog",
    what="broken on purpose: a watchdog that keeps extending after the release",
    make=EndlessWatchdog,
    renews=True,
)
HERD = replace(
    zookeeper.LOCK,
    name="broken-herd",
    reference=None,
    what="broken on purpose: ZooKeeper's recipe with every waiter watching the holder's znode",
    make=herd,
    sound=False,
)
