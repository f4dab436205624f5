"""One object through the general engine, from its first event to its last."""

from __future__ import annotations

import heapq
from collections.abc import Hashable

from checker.lincheck.budget import Budget
from checker.lincheck.horizon import Horizon
from checker.lincheck.model import Action, Model, Timed
from checker.lincheck.operation import Operation, in_order
from checker.lincheck.search import Search


def search_for(
    operations: list[Operation], model: Model, budget: Budget, *, trace: bool = False
) -> tuple[Search, Operation | None]:
    """The search after the last event, and None; or as it was at the first return that can not
    be placed, and its operation. Raises Exhausted."""
    search = Search(model, budget, trace=trace)
    leases = Leases(model, search) if model.spawns is not None else None
    horizon = Horizon(model, operations, search) if model.reaches is not None else None
    for position, operation in in_order(operations):
        if leases is not None:
            leases.advance(operation.time if position == operation.id else operation.ended)
        if position != operation.id:
            if not search.complete(operation.id):
                return search, operation
            if leases is not None:
                leases.returned(operation.action)
        elif operation.returned is None:
            search.loose(operation.action)
        else:
            search.invoke(operation.id, operation.action)
            if leases is not None:
                leases.invoked(operation.action)
        if horizon is not None:
            horizon.passed(operation, position)
    return search, None


class Leases:
    """Steps that nobody invokes: each is offered to the search once its time has come."""

    def __init__(self, model: Model, search: Search) -> None:
        assert model.spawns is not None
        self.spawns, self.settles, self.search = model.spawns, model.settles, search
        self.waiting: list[tuple[int, int, Timed]] = []
        self.live: dict[Hashable, list[Action]] = {}
        self.count = 0

    def invoked(self, action: Action) -> None:
        timed = self.spawns(action)
        if timed is not None:
            self.count += 1
            heapq.heappush(self.waiting, (timed.at_ns, self.count, timed))
            self.live.setdefault(timed.key, []).append(timed.action)

    def advance(self, now_ns: int | None) -> None:
        while self.waiting and now_ns is not None and self.waiting[0][0] <= now_ns:
            timed = heapq.heappop(self.waiting)[2]
            if timed.action in self.live.get(timed.key, ()):
                self.search.loose(timed.action)

    def returned(self, action: Action) -> None:
        """A release: the grant is over, and can not expire any more."""
        for over in self.live.pop(self.settles(action), ()):
            self.search.forget(over)
