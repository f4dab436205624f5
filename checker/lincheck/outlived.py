"""Crashed ops that are of no use any more, and are dropped.

An op that never completed may happen at any later time, so every client that dies leaves some ops
behind for good, and in a long history they are thousands. Nearly all have outlived what they were
for, as the rest of the history tells:

- what needs a facet that no state has, and to which no op leads that is open, crashed or still to
  come, can change nothing (the expiry of a hold that is over);
- what gives something that no op wants which is out or still to come need never happen (the acquire
  of a client that died in it).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from fencepost.checker.lincheck.leases import Leases
from fencepost.checker.lincheck.model import ANY_STATE, UNSAID, Action, Model
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.search import Search

FIRST = 64  # classes of crashed ops before the first look

Last = Mapping[Hashable, int]
"""To a facet, or for what is wanted: where the last op that leads there or wants it is invoked."""


class Outlived:
    """Drops the crashed ops of one object's search that no later op can make use of.

    at: with how many classes it looks again; twice as many as it left, so that looking takes time
    in proportion to the ops.
    """

    def __init__(self, model: Model, leads: Last, wants: Last, at: int) -> None:
        self._model = model
        self._leads, self._wants = leads, wants
        self.at = at

    @classmethod
    def begin(cls, model: Model, operations: Iterable[Operation]) -> Outlived:
        """For a search of these operations, before the first event."""
        leads: dict[Hashable, int] = {}
        wants: dict[Hashable, int] = {}
        for operation in operations:
            for action in (operation.action, *_brought(model, operation.action)):
                for last, key in ((leads, model.leads(action)), (wants, model.wants(action))):
                    last[key] = max(last.get(key, -1), operation.id)
        return cls(model, leads, wants, FIRST)

    def copy(self) -> Outlived:
        """The same, for a copy of the walk."""
        return Outlived(self._model, self._leads, self._wants, self.at)

    def drop(self, search: Search, leases: Leases | None, position: int) -> None:
        """Drop what is of no use after the event at this position."""
        crashed, actions = search.crashed, search.table.actions
        records = [used for own in search.configurations.values() for used, _ in own]
        unused = [number for number in crashed.counts if crashed.unused(number, records)]
        waiting = leases.due() if leases is not None else []
        coming = self._facets(search, waiting, position)
        wanted = {self._model.wants(action) for action in waiting} | crashed.wanted.keys()
        if crashed.anything_wanted:
            wanted.add(UNSAID)
        useless = [
            number
            for number in unused
            if not self._may_change(actions[number], coming, position)
            or not self._may_help(actions[number], wanted, position)
        ]
        search.drop(useless)
        if leases is not None:
            leases.forget(search)
        self.at = max(FIRST, 2 * len(crashed.counts))

    def _facets(self, search: Search, waiting: list[Action], position: int) -> set[Hashable] | None:
        """The facets that a state may have from now on; None: any."""
        table, leads = search.table, self._model.leads
        out = [number for _, number in search.slots.ops.values()] + list(search.crashed.counts)
        found = {table.facets[state] for state, _ in search.configurations}
        found |= {leads(action) for action in waiting}
        found |= {leads(table.actions[number]) for number in out}
        if UNSAID in found or self._leads.get(UNSAID, -1) > position:
            return None
        return found

    def _may_change(self, action: Action, coming: set[Hashable] | None, position: int) -> bool:
        needs = self._model.needs(action)
        if coming is None or needs in (UNSAID, ANY_STATE) or needs in coming:
            return True
        return self._leads.get(needs, -1) > position

    def _may_help(self, action: Action, wanted: set[Hashable], position: int) -> bool:
        gives = self._model.gives(action)
        if gives is UNSAID or UNSAID in wanted or gives in wanted:
            return True
        return max(self._wants.get(gives, -1), self._wants.get(UNSAID, -1)) > position


def _brought(model: Model, action: Action) -> list[Action]:
    """The step that a call brings with it, if it brings one."""
    timed = model.spawns(action) if model.spawns is not None else None
    return [] if timed is None else [timed.action]
