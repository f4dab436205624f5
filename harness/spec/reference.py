"""The reference lock of a user lock: fencepost's own on the same servers (hunt/search/inherent.py).

It has grants that end in the same way, because a promise of a session is no promise of a lease. One
Redis server: `redis`, with its counter as token. Several: `redlock`. PostgreSQL: `postgres`, whose
session holds an advisory lock, or `postgres-lease`, a row that expires by the server's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fencepost.harness.spec.spec import Spec
from fencepost.workloads.locks.registry import LOCKS


@dataclass(frozen=True)
class _Reference:
    """A reference lock. `single`: for one server; None: for any number."""

    lock: str
    kind: str
    ends_with: str = "lease"
    single: bool | None = None
    options: Mapping[str, str] = field(default_factory=dict)


_NAMES = {"redis": "Redis", "zookeeper": "ZooKeeper", "postgres": "PostgreSQL"}
# A wait that is much longer than a lease would be a late grant by itself.
_SHORT = {"wait_ms": "2000"}
_REFERENCES = (
    _Reference("redis", "redis", single=True, options={"token": "incr"}),
    _Reference("redlock", "redis", single=False),
    _Reference("etcd", "etcd"),
    _Reference("zookeeper", "zookeeper", ends_with="close", options=_SHORT),
    _Reference("postgres", "postgres", ends_with="connection", options=_SHORT),
    _Reference("postgres-lease", "postgres"),
)


def of(spec: Spec, in_session: bool | None = None) -> Spec | None:
    """Return the test of the reference lock of a user lock; None if it has no reference.

    `in_session`: the user lock's holder keeps a lock in its session with the server; None: unknown,
    so that a lock whose grants end with their connection has no reference.
    """
    lock = spec.lock_type
    if spec.own is None or lock.replicated:
        return None
    if lock.ends_with == "connection" and in_session is None:
        return None
    ends_with = "lease" if in_session is False else lock.ends_with
    for one in _REFERENCES:
        if (one.kind, one.ends_with) == (lock.kind, ends_with) and one.single in (
            None, lock.servers == 1,
        ):  # fmt: skip
            options = LOCKS[one.lock].read_options(one.options)
            return replace(spec, own=None, lock=one.lock, options=options)
    return None


def servers(spec: Spec) -> str:
    """Return the servers of a test in words."""
    count, kind = spec.lock_type.servers, spec.lock_type.kind
    name = _NAMES.get(kind, kind)
    words = f"one {name} server" if count == 1 else f"{count} {name} servers"
    return (
        f"{words} without persistence" if kind == "redis" and spec.persistence == "none" else words
    )
