"""Steps without an invocation, such as the end of a lease: each is offered once it is due.

Only grants that may still be held are remembered, so looking through them is cheap; a release that
returned settles its grant. Calls that never returned are different. Such a call may not have
happened, so the lease of an unobserved grant is left out; thus most crashed acquires cost nothing.
But if its process continues and releases or extends that hold, the grant must have happened, and
may have expired before. And a call that never returned may happen late, even after the release of
the hold before, so its step then outlasts every release.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from fencepost.checker.lincheck.model import Action, Model, Timed
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.search import Search

LASTING: Final = object()  # the key of steps that no release settles


class Leases:
    """The Timed steps of one object's calls, offered to its search when due.

    operations: all of them; without them, as when events are still to come, no process is assumed
    to continue after a call that never returned.
    """

    def __init__(self, model: Model, search: Search, operations: Sequence[Operation] = ()) -> None:
        assert model.spawns is not None
        self.model, self.search = model, search
        self.spawns, self.settles = model.spawns, model.settles
        self.waiting: dict[Hashable, tuple[Timed, ...]] = {}
        self.offered: dict[Hashable, tuple[Action, ...]] = {}
        self.next_ns: int | None = None
        self.resumed = _resumed(model, operations)

    def copy(self, search: Search) -> Leases:
        """Copy it for a copy of the search."""
        other = Leases(self.model, search)
        other.resumed, other.next_ns = self.resumed, self.next_ns
        other.waiting, other.offered = self.waiting.copy(), self.offered.copy()
        return other

    def invoked(self, action: Action, pending_at: int | None = None) -> None:
        """Add the steps of a call. pending_at: where it was invoked, if it will never return."""
        timed = self.spawns(action)
        if timed is None:
            return
        resumed = pending_at is not None and pending_at < self.resumed[timed.key]
        if timed.idle and not resumed:
            return
        key = LASTING if resumed else timed.key
        self.waiting[key] = (*self.waiting.get(key, ()), timed)
        if self.next_ns is None or timed.at_ns < self.next_ns:
            self.next_ns = timed.at_ns

    def advance(self, now_ns: int | None) -> None:
        if self.next_ns is None or now_ns is None or now_ns < self.next_ns:
            return
        later: dict[Hashable, tuple[Timed, ...]] = {}
        for key, own in self.waiting.items():
            due = tuple(timed.action for timed in own if timed.at_ns <= now_ns)
            if len(due) < len(own):
                later[key] = tuple(timed for timed in own if timed.at_ns > now_ns)
            for action in due:
                self.search.loose(action)
            if due and key is not LASTING:
                self.offered[key] = self.offered.get(key, ()) + due
        self.waiting = later
        self.next_ns = min((timed.at_ns for own in later.values() for timed in own), default=None)

    def to_come(self) -> list[Action]:
        """Return the steps that are not due yet."""
        return [timed.action for own in self.waiting.values() for timed in own]

    def forget(self, search: Search) -> None:
        """Forget steps that the search has dropped."""
        numbers, counts = search.table.numbers, search.crashed.counts
        self.offered = {
            key: own
            for key, own in self.offered.items()
            if any(numbers.get(action) in counts for action in own)
        }

    def returned(self, action: Action) -> None:
        """Settle a release: the grant has ended, and cannot expire any more."""
        key = self.settles(action)
        if key is not None:
            self.waiting.pop(key, None)
            for over in self.offered.pop(key, ()):
                self.search.withdraw(over)


def _resumed(model: Model, operations: Sequence[Operation]) -> dict[Hashable, int]:
    """For calls that never returned: map each key of their steps to the invocation of the last op
    with that key that returned."""
    assert model.spawns is not None
    pending = [operation.action for operation in operations if operation.returned is None]
    if not pending:
        return {}
    timed = [model.spawns(action) for action in pending]
    found = {step.key: -1 for step in timed if step is not None}
    for operation in operations:
        if operation.returned is not None:
            step = model.spawns(operation.action)
            key = model.resumes(operation.action) if step is None else step.key
            if key in found and operation.id > found[key]:
                found[key] = operation.id
    return found
