"""An owner-aware mutex: linearizable iff the mandatory holds are pairwise disjoint.

The mandatory hold of a process goes from the return of its acquire to the invocation of its
release, or to the end without one. In every linearization the process holds the lock in between, so
two that overlap are a contradiction. If none overlap, each hold can be shrunk to (almost) its
mandatory part: acquires linearize at their return, releases at their invocation, and pending
acquires never. Pending ops add no constraint, so one pass in the order of events suffices.

This assumes that each process alternates acquire and release, as a client that waits for its
answers does. The general engine decides the rest: a release without a known acquire, an acquire
during the process' own hold, a process that continues after an op that never returned.
"""

from __future__ import annotations

from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Events, Operation


def disjoint_holds(operations: list[Operation], model: Model) -> bool | Operation | None:
    """Return True, or the acquire whose hold overlaps another; None if a condition is not met."""
    if model.initial is not None:
        return None
    holder: int | str | None = None
    holding: set[int | str] = set()
    gone: set[int | str] = set()
    second: Operation | None = None
    for position, operation in Events(operations):
        process = operation.process
        if position != operation.id:  # a return
            if operation.action.f == "acquire":
                if holder is not None and second is None:
                    second = operation
                holder = process
                holding.add(process)
            continue
        if process in gone:
            return None
        if operation.returned is None:
            gone.add(process)
        if operation.action.f == "acquire":
            if process in holding:
                return None
        elif process in holding:
            holding.discard(process)
            if holder == process:
                holder = None
        elif operation.returned is not None and operation.action.f == "release":
            return None
    return second or True
