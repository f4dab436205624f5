"""Certain order as positions on time axes: many ops are compared without comparing each pair.

Clocks decides for two ops whether one was certainly before the other. Here each op has a position
on some axes, and is certainly before another if it is so on an axis that both share:

- the axis of its clock: ops of one node, and of all nodes whose clocks leave no doubt, by
  their position in the history; by time if the history is tied;
- the axis of its process, if the history is tied: by position;
- `EVERY`, if some clock is known only to a bound: all ops by time, with a begin moved back by
  its node's bound and an end moved forward by it.

A history is tied if two processes have an end and a later begin with one stamp: its position does
not order these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.history.history import History, Op

EVERY = "every"
Axis = tuple[str, int | str | None]
_SURE: Axis = ("clock", None)
Mark = tuple[Axis, int]
T = TypeVar("T")


class Scale(NamedTuple):
    """How ops are placed on an axis: by their position in the history, or by time within `bound`
    ns."""

    axis: Axis
    by_position: bool
    bound: int = 0


class Axes:
    """The axes of a history's ops. `tied`: see above."""

    def __init__(self, clocks: Clocks, tied: bool) -> None:
        self._clocks, self._tied = clocks, tied

    @property
    def one(self) -> bool:
        """Return whether all ops share one axis, by their position in the history."""
        return not self._clocks and not self._tied

    def scales(self, node: str | None, process: int | str) -> list[Scale]:
        """Return the axes of an op of this process on this node, its clock's first."""
        bound = self._clocks.bound(node)
        found = [Scale(("clock", node) if bound else _SURE, by_position=not self._tied)]
        if self._tied:
            found.append(Scale(("process", process), by_position=True))
        if self._clocks:
            found.append(Scale((EVERY, None), by_position=False, bound=bound))
        return found

    def ends(self, op: Op) -> list[Mark]:
        """Yield the positions of this op as an end."""
        return self._marks(op, 1)

    def begins(self, op: Op) -> list[Mark]:
        """Yield the positions of this op as a begin."""
        return self._marks(op, -1)

    def _marks(self, op: Op, side: int) -> list[Mark]:
        if self.one:
            return [(_SURE, op.index)]
        return [
            (scale.axis, op.index if scale.by_position else op.time + side * scale.bound)
            for scale in self.scales(op.node, op.process)
        ]


def tied(history: History) -> bool:
    """Return whether an end and a later begin of two processes have one stamp."""

    def found() -> list[bool]:
        now, ended = -1, set[int | str]()
        for op in history.clients():
            if op.time != now:
                now, ended = op.time, set()
            if op.type != "invoke":
                ended.add(op.process)
            elif ended and ended != {op.process}:
                return [True]
        return [False]

    return history.once("tied", found)[0]


Find = Callable[[Op], tuple[int, T] | None]


def highest_before(axes: Axes, things: Iterable[tuple[Op, int, T]]) -> Find[T]:
    """Return a function from an op to the thing of highest rank that had certainly ended before it
    began.

    `things` are (the op that ended it, its rank, it); results are (rank, thing).
    """
    if axes.one:
        row = _Row([(op.index, rank, thing) for op, rank, thing in things])
        return lambda op: row.highest(op.index)
    table = _Table((axes.ends(op), rank, thing) for op, rank, thing in things)
    return lambda op: table.highest(axes.begins(op))


def lowest_after(axes: Axes, things: Iterable[tuple[Op, int, T]]) -> Find[T]:
    """Return a function from an op to the thing of lowest rank that certainly began after it
    ended."""
    if axes.one:
        row = _Row([(-op.index, -rank, thing) for op, rank, thing in things])
        return lambda op: _turned_back(row.highest(-op.index))
    table = _Table((_turned(axes.begins(op)), -rank, thing) for op, rank, thing in things)
    return lambda op: _turned_back(table.highest(_turned(axes.ends(op))))


def _turned(marks: list[Mark]) -> list[Mark]:
    return [(axis, -at) for axis, at in marks]


def _turned_back(found: tuple[int, T] | None) -> tuple[int, T] | None:
    return None if found is None else (-found[0], found[1])


class _Row:
    """Ranked things by position on one axis, with the highest of every prefix."""

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
    """Ranked things by position on several axes."""

    def __init__(self, rows: Iterable[tuple[list[Mark], int, Any]]) -> None:
        placed: dict[Axis, list[tuple[int, int, Any]]] = {}
        for marks, rank, thing in rows:
            for axis, at in marks:
                placed.setdefault(axis, []).append((at, rank, thing))
        self._rows = {axis: _Row(found) for axis, found in placed.items()}

    def highest(self, marks: list[Mark]) -> tuple[int, Any] | None:
        """Return the highest of those before one of the marks."""
        rows = ((self._rows[axis], at) for axis, at in marks if axis in self._rows)
        found = (row.highest(at) for row, at in rows)
        return max((one for one in found if one is not None), key=lambda one: one[0], default=None)
