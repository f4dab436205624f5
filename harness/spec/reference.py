"""The reference lock of a user lock: fencepost's own on the same servers (hunt/search/inherent.py).

It has grants that end in the same way, because a promise of a session is no promise of a lease.
Each lock says whether it is one (`LockType.reference`).
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.harness.servers.kinds import independent
from fencepost.harness.spec.models import model_of
from fencepost.harness.spec.spec import Spec, survives
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.locks.registry import LOCKS


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
    for name, one in LOCKS.items():
        if one.reference and one.reference.ends_with == ends_with and _same_servers(one, lock):
            options = one.read_options(one.reference.options)
            return replace(spec, own=None, lock=name, options=options)
    return None


def _same_servers(one: LockType, other: LockType) -> bool:
    single = not independent(one.kind) or (one.servers == 1) == (other.servers == 1)
    return one.kind == other.kind and single


def servers(spec: Spec) -> str:
    """Return the servers of a test in words."""
    count, kind = spec.lock_type.servers, spec.lock_type.kind
    model = model_of(kind)
    name = (model.title if model else "") or kind
    words = f"one {name} server" if count == 1 else f"{count} {name} servers"
    return f"{words} without persistence" if survives(spec) == "nothing" else words
