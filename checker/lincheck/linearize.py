"""One object through the general engine, from its first event to its last."""

from __future__ import annotations

from collections.abc import Hashable

from checker.lincheck.budget import Budget
from checker.lincheck.horizon import Horizon
from checker.lincheck.model import Action, Model, Timed
from checker.lincheck.operation import Operation, in_order
from checker.lincheck.search import Search

WIDTHS = (4, 16, 64, 256, 1024, 16_384, None)


def explore(
    operations: list[Operation], model: Model, budget: Budget, *, trace: bool = False
) -> tuple[Search, Operation | None]:
    """Decides one object: (search, None) if it is linearizable, else (search, operation that can
    not be placed). Raises Exhausted.

    Many crashed ops can be used in so many ways that keeping all is out of the question, and is
    seldom needed. So, until one of these answers:

    1. Keep few configurations. If a way to the end is found, that is a linearization. If
       none is found and none was dropped, there is none.
    2. Once: let every crashed op happen as often as one likes. Records fall away and the search
       is small; if even so an op can not be placed, there is none.
    3. Keep more, and in the end all.
    """
    pending = any(operation.returned is None for operation in operations)
    for width in WIDTHS if pending else (None,):
        search, failed = search_for(operations, model, budget, trace=trace, width=width)
        if failed is None or not search.cut:
            return search, failed
        if width == WIDTHS[0]:
            relaxed, impossible = search_for(operations, model, budget, endless=True)
            if impossible is not None and not relaxed.cut:
                return search, impossible
    raise AssertionError("the last width keeps everything")


def search_for(
    operations: list[Operation],
    model: Model,
    budget: Budget,
    *,
    trace: bool = False,
    width: int | None = None,
    endless: bool = False,
) -> tuple[Search, Operation | None]:
    """The search after the last event, and None; or as it was at the first return that it could
    not place, and its operation. See Search for the options. Raises Exhausted."""
    search = Search(model, budget, trace=trace, width=width, endless=endless)
    leases = Leases(model, search) if model.spawns is not None else None
    horizon = Horizon(model, operations, search) if model.reaches is not None else None
    for count, (position, operation) in enumerate(in_order(operations)):
        if not count & 1023:
            budget.spend(f"after {count} events of an object")
        if leases is not None:
            leases.advance(operation.time if position == operation.id else operation.ended)
        if position != operation.id:
            if not search.complete(operation.id):
                return search, operation
            if endless and search.cut:
                return search, None
            search.compact()
            if leases is not None:
                leases.returned(operation.action)
        else:
            if operation.returned is None:
                search.loose(operation.action)
            else:
                search.invoke(operation.id, operation.action)
            if leases is not None:
                leases.invoked(operation.action)
        if horizon is not None:
            horizon.passed(operation, position)
    return search, None


class Leases:
    """Steps that nobody invokes: each is offered to the search once its time has come.

    Only grants that may still be held are remembered, so looking through them is cheap.
    """

    def __init__(self, model: Model, search: Search) -> None:
        assert model.spawns is not None
        self.spawns, self.settles, self.search = model.spawns, model.settles, search
        self.waiting: dict[Hashable, list[Timed]] = {}
        self.offered: dict[Hashable, list[Action]] = {}
        self.next_ns: int | None = None

    def copy(self, search: Search) -> Leases:
        """The same, for a copy of the search."""
        other = Leases.__new__(Leases)
        other.spawns, other.settles, other.search = self.spawns, self.settles, search
        other.waiting = {key: own.copy() for key, own in self.waiting.items()}
        other.offered = {key: own.copy() for key, own in self.offered.items()}
        other.next_ns = self.next_ns
        return other

    def invoked(self, action: Action) -> None:
        timed = self.spawns(action)
        if timed is not None:
            self.waiting.setdefault(timed.key, []).append(timed)
            if self.next_ns is None or timed.at_ns < self.next_ns:
                self.next_ns = timed.at_ns

    def advance(self, now_ns: int | None) -> None:
        if self.next_ns is None or now_ns is None or now_ns < self.next_ns:
            return
        later: dict[Hashable, list[Timed]] = {}
        for key, own in self.waiting.items():
            for timed in own:
                if timed.at_ns > now_ns:
                    later.setdefault(key, []).append(timed)
                else:
                    self.search.loose(timed.action)
                    self.offered.setdefault(key, []).append(timed.action)
        self.waiting = later
        self.next_ns = min((timed.at_ns for own in later.values() for timed in own), default=None)

    def returned(self, action: Action) -> None:
        """A release: the grant is over, and can not expire any more."""
        key = self.settles(action)
        if key is not None:
            self.waiting.pop(key, None)
            for over in self.offered.pop(key, ()):
                self.search.forget(over)
