"""The reference lock of a user lock: fencepost's own on the same servers (hunt/search/inherent.py).

One Redis server: `redis`, with its counter as token. Several: `redlock`. etcd: `etcd`.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.harness.spec.spec import Spec
from fencepost.workloads.locks.registry import LOCKS

_OF_ONE = {"redis": ("redis", {"token": "incr"})}
_OF_MANY = {"redis": "redlock", "etcd": "etcd"}


def of(spec: Spec) -> Spec | None:
    """Return the test of the reference lock of a user lock; None if it has no reference."""
    lock = spec.lock_type
    if spec.own is None or lock.replicated or lock.ends_with != "lease":
        return None
    name, given = _OF_ONE.get(lock.kind, ("", {})) if lock.servers == 1 else ("", {})
    name = name or _OF_MANY.get(lock.kind, "")
    if not name:
        return None
    return replace(spec, own=None, lock=name, options=LOCKS[name].read_options(given))


def servers(spec: Spec) -> str:
    """Return the servers of a test in words."""
    count, kind = spec.lock_type.servers, spec.lock_type.kind
    name = {"redis": "Redis"}.get(kind, kind)
    words = f"one {name} server" if count == 1 else f"{count} {name} servers"
    return (
        f"{words} without persistence" if kind == "redis" and spec.persistence == "none" else words
    )
