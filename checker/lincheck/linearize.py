"""Runs one object through the general engine, from its first event to its last."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from fencepost.checker.lincheck.budget import Budget
from fencepost.checker.lincheck.horizon import Horizon
from fencepost.checker.lincheck.leases import Leases
from fencepost.checker.lincheck.model import Action, Model
from fencepost.checker.lincheck.operation import Events, Operation
from fencepost.checker.lincheck.outlived import Outlived
from fencepost.checker.lincheck.search import Search, compact

NARROW = 1  # configurations kept while the search succeeds
# After a dead end: how many are kept, from how many events before, until how many after.
WIDER = ((8, 64, 16), (32, 256, 32), (128, 1024, 64), (512, 4096, 128))
WIDTHS = (1024, 16_384, None)  # then for the whole history; the last width keeps all
WEIGHT = 4  # share of `widening` in the effort: it is dearer, and more rarely the one that answers
CHECKPOINT = 16  # events between two checkpoints
END: Final = 1 << 62  # a position after every history
FEW = 32  # ops of which all ways can be kept, however many of them crashed
RECENT = 8  # the number kept in full; of older ones every second, fourth, eighth

Answer = tuple[Search, Operation | None]
Way = Generator[int, None, Answer | None]  # yields the effort that each of its turns took


def explore(
    operations: list[Operation], model: Model, budget: Budget, *, trace: bool = False
) -> Answer:
    """Decide one object: (search, None) if it is linearizable, else (search, operation at which it
    stopped): the first that cannot be placed if `search.exact`, else perhaps another. Raises
    Exhausted.

    Crashed ops can be used in too many ways to keep all, and that is seldom needed. Two strategies
    avoid it: one drops configurations, the other does not count all uses. Some histories are hard
    for one, others for the other, and few for both, so they take turns.
    """
    if all(operation.returned is not None for operation in operations):
        walk = Walk.begin(operations, model, budget, trace=trace)
        return walk.search, walk.to_end()
    return _in_turns(
        [widening(operations, model, budget, trace), relaxed(operations, model, budget, trace)]
    )


def explore_up_to(
    operations: list[Operation],
    position: int,
    model: Model,
    budget: Budget,
    *,
    trace: bool = False,
) -> Answer:
    """Do the same as `explore` for the history up to this position (END: all of it): an op that
    returns later is open, and may have happened or not. Raises Exhausted.

    No later event separates one way from another, so all ways may be too many, and one mostly
    suffices.
    """
    known = [
        op
        for op in operations
        if op.id < position
        and (op.returned is None or op.returned <= position or not model.observes(op.action))
    ]  # an open op that only observes enables no other
    ways = [widening(known, model, budget, trace, position)]
    if len(known) > FEW and any(op.returned is None for op in known):
        ways.append(relaxed(known, model, budget, trace, position))
    return _in_turns(ways)


def _in_turns(ways: list[Way]) -> Answer:
    """Return the first answer of these strategies, each given the same effort."""
    efforts = [0] * len(ways)
    while True:
        turn = efforts.index(min(efforts))
        try:
            efforts[turn] += next(ways[turn])
        except StopIteration as end:
            if end.value is not None:
                answer: Answer = end.value
                return answer
            del ways[turn], efforts[turn]


def widening(
    operations: list[Operation],
    model: Model,
    budget: Budget,
    trace: bool,
    until: int | None = None,
) -> Way:
    """Keep one configuration, and more around dead ends; at last all. A way to the end is a
    linearization; if none is found and none was dropped, there is none. Until its first dead end it
    has all turns."""
    walk = Walk.begin(operations, model, budget, trace=trace, width=NARROW, until=until)
    walk.alone = False
    checkpoints, crowded = [walk.copy()], RECENT
    level, narrow_at, furthest = -1, 0, -1
    while True:
        effort = walk.search.effort
        failed = walk.to(walk.at + CHECKPOINT)
        yield WEIGHT * (walk.search.effort - effort) if furthest >= 0 else 0
        if failed is None:
            if walk.at >= narrow_at and level >= 0:
                level = -1
                walk.search.width = NARROW
            if walk.over:
                return walk.search, None
            checkpoints.append(walk.copy())
            if len(checkpoints) >= crowded:
                _thin(checkpoints)
                crowded = len(checkpoints) + RECENT
            if walk.search.table.crowded():
                compact([walk.search, *(place.search for place in checkpoints)])
            continue
        if not walk.search.cut:
            return walk.search, failed
        if walk.at > furthest:
            furthest, level = walk.at, -1
        level += 1
        if level == len(WIDER):
            break
        width, back, ahead = WIDER[level]
        _thin(checkpoints)
        while len(checkpoints) > 1 and checkpoints[-1].at > furthest - back:
            checkpoints.pop()
        walk = checkpoints[-1].copy()
        walk.search.width, narrow_at = width, furthest + ahead
    for wide in WIDTHS:
        walk = Walk.begin(operations, model, budget, trace=trace, width=wide, until=until)
        failed = yield from _pausing(walk)
        if failed is None or not walk.search.cut:
            return walk.search, failed
    raise AssertionError("the last width keeps everything")


def relaxed(
    operations: list[Operation],
    model: Model,
    budget: Budget,
    trace: bool,
    until: int | None = None,
) -> Way:
    """Let crashed ops happen any number of times, so that records hardly differ and the search is
    small. If an op cannot be placed even so, there is no linearization; a way that overuses no op
    is one. If all ways overuse some, those that the best one overuses are counted from then on: an
    abstraction refined by its counterexamples (Clarke et al. 2000). Returns None (no answer) if
    unlimited ops have unlimited effects, as on a queue or a sum."""
    counted: frozenset[Action] = frozenset()
    while True:
        walk = Walk.begin(operations, model, budget, trace=trace, counted=counted, until=until)
        overused: frozenset[Action] = frozenset()
        failed = None
        while failed is None and not walk.over and not overused:
            effort = walk.search.effort
            failed = walk.to(walk.at + CHECKPOINT)
            yield walk.search.effort - effort
            if walk.search.cut:
                return None
            overused = walk.search.overused()
        if failed is not None and not trace:
            return walk.search, failed
        if not overused:  # people see the paths, so only possible ones
            walk.search.settle()
            return walk.search, failed
        counted |= overused


def _pausing(walk: Walk) -> Generator[int, None, Operation | None]:
    """Search to the end, yielding the effort now and then; return None, or the operation that
    cannot be placed."""
    while not walk.over:
        effort = walk.search.effort
        failed = walk.to(walk.at + CHECKPOINT)
        yield walk.search.effort - effort
        if failed is not None:
            return failed
    return None


def _thin(checkpoints: list[Walk]) -> None:
    """Keep the latest, and the fewer of older ones the older they are; always the first."""
    latest = checkpoints[-1].at // CHECKPOINT

    def kept(number: int) -> bool:
        return number % (1 << ((latest - number) // RECENT).bit_length()) == 0

    checkpoints[:] = [place for place in checkpoints if kept(place.at // CHECKPOINT)]


@dataclass(slots=True, eq=False)
class Walk:
    """A search at a position of a history's events; `at` is the next event.

    alone: no copy shares the search's table of states and actions.
    """

    events: Events
    budget: Budget
    search: Search
    leases: Leases | None
    horizon: Horizon | None
    outlived: Outlived | None
    at: int = 0
    alone: bool = True

    @classmethod
    def begin(
        cls,
        operations: list[Operation],
        model: Model,
        budget: Budget,
        *,
        trace: bool = False,
        width: int | None = None,
        counted: frozenset[Action] | None = None,
        prune: bool = True,
        until: int | None = None,
    ) -> Walk:
        """Start a walk before the first event.

        prune: drop configurations that later results rule out, which finds the verdict sooner, but
        may then stop at an op that could be placed. until: see Events. See Search.begin for the
        others.
        """
        search = Search.begin(model, budget, trace=trace, width=width, counted=counted)
        leases = Leases(model, search, operations) if model.spawns is not None else None
        search.pruned = prune and model.reaches is not None
        horizon = Horizon.begin(model, operations, search) if search.pruned else None
        outlived = Outlived.begin(model, operations)
        return cls(Events(operations, until), budget, search, leases, horizon, outlived)

    @property
    def over(self) -> bool:
        return self.at == len(self.events)

    def copy(self) -> Walk:
        """Return an independent copy."""
        search = self.search.copy()
        leases = None if self.leases is None else self.leases.copy(search)
        horizon = None if self.horizon is None else self.horizon.copy(search)
        outlived = None if self.outlived is None else self.outlived.copy()
        return Walk(
            self.events, self.budget, search, leases, horizon, outlived, self.at, self.alone
        )

    def to_end(self) -> Operation | None:
        return self.to(len(self.events))

    def to(self, place: int) -> Operation | None:
        """Walk up to that event, or the end; return None, or the operation that cannot be placed.

        On failure the search is as it was before. A relaxed search that was cut stops, and records
        that (`Search.cut`). Raises Exhausted.
        """
        search, leases, horizon = self.search, self.leases, self.horizon
        outlived = self.outlived
        for position, operation in self.events.between(self.at, place):
            if not self.at & 1023:
                self.budget.spend(f"after {self.at} events of an object")
            if leases is not None:
                leases.advance(operation.time if position == operation.id else operation.ended)
            if position != operation.id:
                if not search.complete(operation.id):
                    return operation
                if search.relaxed and search.cut:
                    return None
                if self.alone:
                    compact([search])
                if leases is not None:
                    leases.returned(operation.action)
            else:
                pending = operation.returned is None
                if pending:
                    search.loose(operation.action)
                else:
                    search.invoke(position, operation.action)
                if leases is not None:
                    leases.invoked(operation.action, position if pending else None)
            if horizon is not None:
                horizon.passed(operation, position)
            if outlived is not None and (
                len(search.crashed.counts) > outlived.at
                or (len(search.configurations) > outlived.many and search.crashed.counts)
            ):
                outlived.drop(search, leases, position)
            self.at += 1
        return None
