"""Drops crashed ops without further effect.

An op that never completed may happen at any later time, so every client that dies leaves some ops
behind for good, and in a long history they are thousands. Nearly all have lost their effect, as the
rest of the history shows:

- an op that works in one facet of the state only can change nothing if no state has that facet,
  and no op that is open, crashed or still to come leads there (the expiry of an ended hold);
- an op can be left out if no other op, open, crashed or still to come, wants its effect (the
  acquire of a client that died in it).

Configurations that differ only in such ops, or in parts that only such ops could distinguish
(Model.trimmed), then coincide.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from fencepost.checker.lincheck.leases import Leases
from fencepost.checker.lincheck.model import ANY_STATE, UNSAID, Action, Model
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.search import Search

FIRST = 64  # classes of crashed ops before the first pass,
FEW = 32  # or configurations

Last = Mapping[Hashable, int]
"""For a facet or a want: the invocation of the last op that leads there or wants it."""


class Outlived:
    """Drops the crashed ops of one object's search that no later op can use.

    at, many: the number of classes, or configurations, for the next pass; twice the number left, so
    that passes take time in proportion to the ops.
    """

    def __init__(
        self, model: Model, leads: Callable[[Action], Hashable], last: Last, at: int, many: int
    ) -> None:
        self._model, self._leads, self._last = model, leads, last
        self.at, self.many = at, many

    @classmethod
    def begin(cls, model: Model, operations: Iterable[Operation]) -> Outlived | None:
        """Start before the first event; None for a model that does not declare where its ops
        lead."""
        if model.leads is None:
            return None
        last: dict[Hashable, int] = {}
        for operation in operations:
            for action in (operation.action, *_brought(model, operation.action)):
                for key in (model.leads(action), model.wants(action)):
                    last[key] = max(last.get(key, -1), operation.id)
        return cls(model, model.leads, last, FIRST, FEW)

    def copy(self) -> Outlived:
        """Copy it for a copy of the walk."""
        return Outlived(self._model, self._leads, self._last, self.at, self.many)

    def drop(self, search: Search, leases: Leases | None, position: int) -> None:
        """Drop ops without further effect after the event at this position."""
        crashed, actions = search.crashed, search.table.actions
        waiting = leases.to_come() if leases is not None else []
        coming = self._facets(search, waiting, position)
        wanted = self._wanted(search, waiting)
        search.drop(
            number
            for number in list(crashed.counts)
            if not self._may_change(actions[number], coming, position)
            or not self._may_help(actions[number], wanted, position)
        )
        if leases is not None:
            leases.forget(search)
        if self._model.trimmed is not None and not search.trace:  # paths show all states
            wanted = self._wanted(search, waiting)
            search.trim(lambda key: self._may_be_wanted(key, wanted, position))
        self.at = max(FIRST, 2 * len(crashed.counts))
        self.many = max(FEW, 2 * len(search.configurations))

    def _wanted(self, search: Search, waiting: list[Action]) -> set[Hashable]:
        """Return the wants of pending ops and of steps due later."""
        found = {self._model.wants(action) for action in waiting} | search.crashed.wanted.keys()
        return found | {UNSAID} if search.crashed.anything_wanted else found

    def _facets(self, search: Search, waiting: list[Action], position: int) -> set[Hashable] | None:
        """Return the facets that a state may have from now on; None: any."""
        table = search.table
        found = {table.facets[state] for state, _ in search.configurations}
        numbers = [number for _, number in search.slots.ops.values()] + list(search.crashed.counts)
        out = waiting + [table.actions[number] for number in numbers]
        before = -1
        while len(found) > before:
            before = len(found)
            # An op leads nowhere while no state has the facet that it needs.
            found |= {self._leads(one) for one in out if self._may_change(one, found, position)}
        return None if UNSAID in found or self._comes(UNSAID, position) else found

    def _may_change(self, action: Action, coming: set[Hashable] | None, position: int) -> bool:
        needs = self._model.needs(action)
        if coming is None or needs in (UNSAID, ANY_STATE) or needs in coming:
            return True
        return self._comes(needs, position)

    def _may_help(self, action: Action, wanted: set[Hashable], position: int) -> bool:
        gives = self._model.gives(action)
        return gives is UNSAID or self._may_be_wanted(gives, wanted, position)

    def _may_be_wanted(self, key: Hashable, wanted: set[Hashable], position: int) -> bool:
        if UNSAID in wanted or key in wanted:
            return True
        return self._comes(key, position) or self._comes(UNSAID, position)

    def _comes(self, key: Hashable, position: int) -> bool:
        """Return whether a later op leads there or wants it."""
        return self._last.get(key, -1) > position


def _brought(model: Model, action: Action) -> list[Action]:
    """Return the step that a call brings with it, or None."""
    timed = model.spawns(action) if model.spawns is not None else None
    return [] if timed is None else [timed.action]
