"""Do the tokens of one lock tell its grants apart, and in the order in which they were given?

A grant is given between its invocation and its answer, so only a grant that was answered certainly
before another was asked for is before it. Shared holds may carry one token, that of their
generation (Burrows 2006, section 2.2): the order of two readers decides nothing. An exclusive grant
begins a new generation, also one that carries no token itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost.checker.clocks import Clocks
from fencepost.checker.history import History, Op
from fencepost.checker.holds import Hold, facts, holds
from fencepost.checker.rulers import Rulers, highest_before


@dataclass(frozen=True)
class Misorder:
    """`second` carries a token that it cannot have, as `first` shows; `how` says so in words."""

    first: Hold
    second: Hold
    how: str


@dataclass(frozen=True)
class Grants:
    """The grants of one lock with their acquires, in the history's order of answers."""

    holds: list[Hold]
    ops: Sequence[Op]
    clocks: Clocks

    def asked(self, hold: Hold) -> Op:
        return self.ops[hold.asked_index]

    def answered(self, hold: Hold) -> Op:
        return self.ops[hold.index]

    def before(self, first: Hold, second: Hold) -> bool:
        """Whether `first` was certainly granted before `second`."""
        return self.clocks.before(self.answered(first), self.asked(second))

    @property
    def tokens(self) -> list[tuple[int, Hold]]:
        return [(hold.token, hold) for hold in self.holds if hold.token is not None]


def grants(history: History, found: list[Hold], clocks: Clocks) -> list[Grants]:
    """The grants of each lock."""
    ops = history.ops
    locks: dict[str, list[Hold]] = {}
    for hold in found:
        locks.setdefault(hold.lock, []).append(hold)
    return [Grants(mine, ops, clocks) for mine in locks.values()]


Numbered = tuple[int, Hold]
"""A grant behind its token."""


def above(mine: Grants) -> list[tuple[Numbered, Numbered]]:
    """Each grant that was certainly given after others, behind the one of these that has the
    highest token."""
    highest = highest_before(
        Rulers(mine.clocks), [(mine.answered(hold), token, hold) for token, hold in mine.tokens]
    )
    found = [(highest(mine.asked(hold)), (token, hold)) for token, hold in mine.tokens]
    return [(before, grant) for before, grant in found if before is not None]


def fallen(ordered: list[tuple[Numbered, Numbered]]) -> list[Misorder]:
    """Of the pairs that `above` found, those whose second token is the lower one."""
    return [
        Misorder(first, second, f"a lower token than {higher}")
        for (higher, first), (token, second) in ordered
        if token < higher
    ]


def trusted(history: History, test: Mapping[str, Any], clocks: Clocks) -> list[Hold]:
    """The holds, without their tokens where a lock's tokens fell along certain time: such tokens
    say nothing of the order of its holds."""

    def found() -> list[Hold]:
        held = holds(history, test)
        per_lock = grants(history, held, clocks)
        bad = {wrong.second.lock for mine in per_lock for wrong in fallen(above(mine))}
        return [replace(hold, token=None) if hold.lock in bad else hold for hold in held]

    return history.once(("trusted", clocks.key, facts(test)), found)


def repeated(mine: Grants) -> list[Misorder]:
    """Grants with the token of an earlier one, unless both are shared and may be of one generation:
    no exclusive grant came certainly between them."""
    same: dict[int, list[Hold]] = {}
    for token, hold in mine.tokens:
        same.setdefault(token, []).append(hold)
    twice = [found for found in same.values() if len(found) > 1]
    if not twice:
        return []
    between = _Between(mine)
    return [wrong for found in twice for wrong in _repeats(found, between)]


def _repeats(found: list[Hold], between: _Between) -> Iterator[Misorder]:
    exclusive: Hold | None = None
    # The first to be answered on each node: if any there is before another grant, this one is.
    shared: dict[str | None, Hold] = {}
    for hold in found:
        how = f"the same token as {hold.token}"
        if not hold.shared and hold is not found[0]:
            yield Misorder(found[0], hold, how)
        elif exclusive is not None:
            yield Misorder(exclusive, hold, how)
        else:
            apart = ((first, between.find(first, hold)) for first in shared.values())
            for first, other in apart:
                if other is not None:
                    yield Misorder(first, hold, f"after the exclusive hold {other.name} {how}")
                    break
        if hold.shared:
            shared.setdefault(hold.node, hold)
        else:
            exclusive = hold


class _Between:
    """Finds an exclusive grant that came certainly between two others."""

    def __init__(self, mine: Grants) -> None:
        self._mine = mine
        rulers = Rulers(mine.clocks)
        clocks: dict[object, list[Hold]] = {}
        for hold in mine.holds:
            if not hold.shared:
                clocks.setdefault(rulers.own(hold.node), []).append(hold)
        # Of those of one clock that were over, the one that was asked for last decides.
        self._last = [
            highest_before(rulers, [(mine.answered(one), one.asked_index, one) for one in holds])
            for holds in clocks.values()
        ]

    def find(self, first: Hold, second: Hold) -> Hold | None:
        for last in self._last:
            found = last(self._mine.asked(second))
            if found is not None and self._mine.before(first, found[1]):
                return found[1]
        return None
