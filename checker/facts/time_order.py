"""Certain order as positions on rulers, so that many ops are compared without comparing each pair.

Clocks decides for two ops whether one was certainly before the other. Here each op has a position
on one or two rulers, and is certainly before another if it is so on a ruler that both share:

- the ruler of its clock: ops of one node, and of all nodes whose clocks leave no doubt, by
  their position in the history;
- `EVERY`, if some clock is known only to a bound: all ops by time, with a begin moved back by
  its node's bound and an end moved forward by it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, TypeVar

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.history.history import Op

EVERY = "every"
Ruler = tuple[str, str | None]
_SURE: Ruler = ("clock", None)
Mark = tuple[Ruler, int]
T = TypeVar("T")


class Rulers:
    def __init__(self, clocks: Clocks | None = None) -> None:
        self._clocks = clocks or Clocks()

    @property
    def one(self) -> bool:
        """Return whether all ops share one ruler, by their position in the history."""
        return not self._clocks

    def own(self, node: str | None) -> Ruler:
        """Return the ruler of this node's clock."""
        return ("clock", node) if self._clocks.bound(node) else _SURE

    def shared(self, node: str | None) -> tuple[Ruler, int] | None:
        """Return the ruler of all ops and this node's bound on it, in ns; None if none is
        needed."""
        return ((EVERY, None), self._clocks.bound(node)) if self._clocks else None

    def ends(self, op: Op) -> list[Mark]:
        """Yield the positions of this op as an end."""
        return self._marks(op, 1)

    def begins(self, op: Op) -> list[Mark]:
        """Yield the positions of this op as a begin."""
        return self._marks(op, -1)

    def _marks(self, op: Op, side: int) -> list[Mark]:
        shared = self.shared(op.node)
        if shared is None:
            return [(_SURE, op.index)]
        return [(self.own(op.node), op.index), (shared[0], op.time + side * shared[1])]


Find = Callable[[Op], tuple[int, T] | None]


def highest_before(rulers: Rulers, things: Iterable[tuple[Op, int, T]]) -> Find[T]:
    """Return a function from an op to the thing of highest rank that had certainly ended before it
    began.

    `things` are (the op that ended it, its rank, it); results are (rank, thing).
    """
    if rulers.one:
        row = _Row([(op.index, rank, thing) for op, rank, thing in things])
        return lambda op: row.highest(op.index)
    table = _Table((rulers.ends(op), rank, thing) for op, rank, thing in things)
    return lambda op: table.highest(rulers.begins(op))


def lowest_after(rulers: Rulers, things: Iterable[tuple[Op, int, T]]) -> Find[T]:
    """Return a function from an op to the thing of lowest rank that certainly began after it
    ended."""
    if rulers.one:
        row = _Row([(-op.index, -rank, thing) for op, rank, thing in things])
        return lambda op: _turned_back(row.highest(-op.index))
    table = _Table((_turned(rulers.begins(op)), -rank, thing) for op, rank, thing in things)
    return lambda op: _turned_back(table.highest(_turned(rulers.ends(op))))


def _turned(marks: list[Mark]) -> list[Mark]:
    return [(ruler, -at) for ruler, at in marks]


def _turned_back(found: tuple[int, T] | None) -> tuple[int, T] | None:
    return None if found is None else (-found[0], found[1])


class _Row:
    """Ranked things by position on one ruler, with the highest of every prefix."""

    def __init__(self, found: list[tuple[int, int, Any]]) -> None:
        found.sort(key=itemgetter(0))
        self._at = [at for at, _, _ in found]
        best = self._best = list[tuple[int, Any]]()
        for _, rank, thing in found:
            best.append(best[-1] if best and best[-1][0] >= rank else (rank, thing))

    def highest(self, at: int) -> tuple[int, Any] | None:
        """Return the highest of those before this position."""
        place = bisect_left(self._at, at)
        return self._best[place - 1] if place else None


class _Table:
    """Ranked things by position on several rulers."""

    def __init__(self, rows: Iterable[tuple[list[Mark], int, Any]]) -> None:
        placed: dict[Ruler, list[tuple[int, int, Any]]] = {}
        for marks, rank, thing in rows:
            for ruler, at in marks:
                placed.setdefault(ruler, []).append((at, rank, thing))
        self._rows = {ruler: _Row(found) for ruler, found in placed.items()}

    def highest(self, marks: list[Mark]) -> tuple[int, Any] | None:
        """Return the highest of those before one of the marks."""
        rows = ((self._rows[ruler], at) for ruler, at in marks if ruler in self._rows)
        found = (row.highest(at) for row, at in rows)
        return max((one for one in found if one is not None), key=lambda one: one[0], default=None)
