"""Whether a lock's tokens are unique and rise in the order of its grants.

A grant is given between its invocation and its answer, so it is before another only if it was
answered certainly before the other was asked for. Shared holds may carry one token, that of their
generation (Burrows 2006, section 2.2): the order of two readers decides nothing. An exclusive grant
begins a new generation, even if it carries no token itself. A second grant to the process that
holds the lock, as a reentrant lock gives it, may carry its token again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from msgspec.structs import replace

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.holds import Hold, facts, holds
from fencepost.checker.facts.second_grants import doubled, until
from fencepost.checker.facts.time_order import Axes, highest_before, tied
from fencepost.checker.history.history import History, Op


@dataclass(frozen=True)
class Misorder:
    """`second` carries a token that it cannot have, as `first` shows; `how` describes it."""

    first: Hold
    second: Hold
    how: str


@dataclass(frozen=True)
class Grants:
    """The grants of one lock with their acquires, in the history's order of answers."""

    holds: list[Hold]
    ops: Sequence[Op]
    clocks: Clocks
    axes: Axes

    def asked(self, hold: Hold) -> Op:
        return self.ops[hold.asked_index]

    def answered(self, hold: Hold) -> Op:
        return self.ops[hold.index]

    def before(self, first: Hold, second: Hold) -> bool:
        """Return whether `first` was certainly granted before `second`."""
        return self.clocks.before(self.answered(first), self.asked(second))

    @property
    def tokens(self) -> list[tuple[int, Hold]]:
        return [(hold.token, hold) for hold in self.holds if hold.token is not None]


def grants(history: History, found: list[Hold], clocks: Clocks) -> list[Grants]:
    """Return the grants of each lock."""
    ops, axes = history.ops, Axes(clocks, tied(history))
    locks: dict[str, list[Hold]] = {}
    for hold in found:
        locks.setdefault(hold.lock, []).append(hold)
    return [Grants(mine, ops, clocks, axes) for mine in locks.values()]


Numbered = tuple[int, Hold]
"""A grant paired with its token, token first."""

Pair = tuple[Numbered, Numbered]


def above(mine: Grants) -> list[Pair]:
    """Return each grant that certainly followed others, with the one of these that has the highest
    token."""
    again = _given_again(mine.holds)
    if mine.axes.one:
        found = _above_on_one_clock(mine.tokens)
        return [pair for pair in found if pair[1][1].index not in again] if again else found
    highest = highest_before(
        mine.axes, [(mine.answered(hold), token, hold) for token, hold in mine.tokens]
    )
    rows = [
        (highest(mine.asked(hold)), (token, hold))
        for token, hold in mine.tokens
        if hold.index not in again
    ]
    return [(before, grant) for before, grant in rows if before is not None]


def _given_again(found: Sequence[Hold]) -> set[int]:
    """Return the positions of second grants with the token of the first: a token that was given
    again has the first grant's place in the order, so it may follow a higher one."""
    again = set()
    for mine in doubled(found):
        same: dict[int | None, list[Hold]] = {}
        for hold in mine:
            before = same.setdefault(hold.token, [])
            if any(_again(one, hold) for one in before):
                again.add(hold.index)
            before.append(hold)
    return again


def _above_on_one_clock(tokens: list[Numbered]) -> list[Pair]:
    """Do the same if the positions of ops in the history are in the order of time."""
    answered = sorted(tokens, key=lambda grant: grant[1].index)
    places = [hold.index for _, hold in answered]
    best: list[Numbered] = []
    for grant in answered:
        best.append(best[-1] if best and best[-1][0] >= grant[0] else grant)
    found = ((bisect_left(places, grant[1].asked_index), grant) for grant in tokens)
    return [(best[place - 1], grant) for place, grant in found if place]


def fallen(pairs: list[Pair]) -> list[Misorder]:
    """Yield the pairs of `above` whose second token is the lower one."""
    return [
        Misorder(first, second, f"a lower token than {higher}")
        for (higher, first), (token, second) in pairs
        if token < higher
    ]


def ordered(history: History, test: Mapping[str, Any], clocks: Clocks) -> list[Pair]:
    """Return the result of `above` for each lock."""

    def found() -> list[Pair]:
        per_lock = grants(history, holds(history, test), clocks)
        return [pair for mine in per_lock for pair in above(mine)]

    return history.once(("ordered", clocks.key, facts(test)), found)


def trusted(history: History, test: Mapping[str, Any], clocks: Clocks) -> list[Hold]:
    """Return the holds, without their tokens if a lock's tokens fell along certain time: such
    tokens do not order its holds."""

    def found() -> list[Hold]:
        held = holds(history, test)
        bad = {wrong.second.lock for wrong in fallen(ordered(history, test, clocks))}
        if not bad:
            return held
        return [replace(hold, token=None) if hold.lock in bad else hold for hold in held]

    return history.once(("trusted", clocks.key, facts(test)), found)


def repeated(mine: Grants) -> list[Misorder]:
    """Yield grants with the token of an earlier one, unless both are shared and may belong to one
    generation: no exclusive grant came certainly between them."""
    same: dict[int, list[Hold]] = {}
    tokens = mine.tokens
    if len({token for token, _ in tokens}) == len(tokens):
        return []
    for token, hold in tokens:
        same.setdefault(token, []).append(hold)
    twice = [found for found in same.values() if len(found) > 1]
    if not twice:
        return []
    between = _Between(mine)
    return [wrong for found in twice for wrong in _repeats(found, between)]


def _repeats(found: list[Hold], between: _Between) -> Iterator[Misorder]:
    exclusive: list[Hold] = []
    # The first to be answered of each process: if any is before another grant, it is this one. A
    # later one counts if it ended sooner, because another grant may lie within the first.
    shared: dict[int | str, list[Hold]] = {}
    for place, hold in enumerate(found):
        how = f"the same token as {hold.token}"
        earlier = exclusive if hold.shared else islice(found, place)
        rival = next((one for one in earlier if not _again(one, hold)), None)
        if rival is not None:
            yield Misorder(rival, hold, how)
        elif hold.shared:
            firsts = (one for row in shared.values() for one in row if not _again(one, hold))
            for first in firsts:
                other = between.find(first, hold)
                if other is not None:
                    yield Misorder(first, hold, f"after the exclusive hold {other.name} {how}")
                    break
        if hold.shared:
            row = shared.setdefault(hold.process, [])
            if not row or until(hold) < until(row[-1]):
                row.append(hold)
        else:
            exclusive.append(hold)


def _again(first: Hold, second: Hold) -> bool:
    """Return whether the process asked for the second hold while it had the first one: a reentrant
    lock may give it the same token."""
    return (
        first.process == second.process
        and first.index < second.asked_index
        and until(first) > second.asked
    )


class _Between:
    """Finds an exclusive grant that came certainly between two others. One with the token of the
    hold that its process had begins no generation."""

    def __init__(self, mine: Grants) -> None:
        self._mine = mine
        rows: dict[object, list[Hold]] = {}
        again = _given_again(mine.holds)
        for hold in mine.holds:
            if not hold.shared and hold.index not in again:
                scales = mine.axes.scales(hold.node, hold.process)
                of_one = next(scale.axis for scale in scales if scale.by_position)
                rows.setdefault(of_one, []).append(hold)
        # Among the ended ones of one axis by position, the last invocation decides.
        self._last = [
            highest_before(mine.axes, [(mine.answered(one), one.asked_index, one) for one in holds])
            for holds in rows.values()
        ]

    def find(self, first: Hold, second: Hold) -> Hold | None:
        for last in self._last:
            found = last(self._mine.asked(second))
            if found is not None and self._mine.before(first, found[1]):
                return found[1]
        return None
