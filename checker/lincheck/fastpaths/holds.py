"""An owner-aware mutex: linearizable iff the mandatory holds are pairwise disjoint.

The mandatory hold of a process goes from the return of its acquire to the invocation of its
release, or to the end where there is none. Whatever happens, the lock is held by that process
in between, so two that meet are a contradiction. If none meet, each hold can be shrunk to
(almost) its mandatory part: acquires linearize at their return, releases at their
invocation, and pending acquires never. Nothing that is pending makes it harder, so it takes one
pass in the order of events.

That holds where each process alternates acquire and release, as a client does that waits for its
answers. A release before which no acquire is known, an acquire on top of one's own hold, or a
process that goes on after an op that never returned: all these are the general engine's.
"""

from __future__ import annotations

from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Events, Operation


def disjoint_holds(operations: list[Operation], model: Model) -> bool | Operation | None:
    """True, or the acquire whose hold meets another; None if a condition is not met."""
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
