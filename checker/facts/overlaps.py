"""Overlapping holds of one lock by two processes.

A second grant to the process that holds the lock is no overlap: a reentrant lock gives it, and no
two clients hold the lock by it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.holds import Hold, facts, holds
from fencepost.checker.history.history import History

Kind = Literal["believed", "strict"]
Span = tuple[float, float, Hold]
"""[start, end) of a hold, in ns."""
_Last = tuple[tuple[float, Hold], ...]
"""The hold that ends last, and the one that ends last among those of other processes."""


def believed(found: Iterable[Hold]) -> list[Span]:
    """Return the spans in which each holder believed in its lease."""
    return [(start, end, hold) for hold in found for start, end in hold.believed]


def strictly(found: Iterable[Hold]) -> list[Span]:
    """Return the spans from each grant until its end. A hold that was lost before its grant arrived
    has none."""
    return [(h.start, h.strict_end, h) for h in found if h.start <= h.strict_end]


class Overlap(Struct, frozen=True, gc=False):
    """Two holds of one lock at one time: `second` began during `first`. Times in ns."""

    first: Hold
    second: Hold
    start: float
    end: float


def overlaps_of(
    history: History, test: Mapping[str, Any], kind: Kind, clocks: Clocks
) -> list[Overlap]:
    """Return the overlaps of a history's believed or strict holds."""

    def found() -> list[Overlap]:
        held = holds(history, test)
        return overlaps(believed(held) if kind == "believed" else strictly(held), clocks)

    return history.once(("overlaps", kind, clocks.key, facts(test)), found)


def overlaps(intervals: Iterable[Span], clocks: Clocks | None = None) -> list[Overlap]:
    """Return the intervals [start, end) of one lock that certainly overlap, in order; [t, t] is an
    instant.

    Each must have begun before the other ended by more than the bounds of both nodes' clocks. Each
    is compared with the earlier one that ends last, so that n holds give at most n overlaps: enough
    to name every hold that should not have been granted, without quadratic cost. Shared holds may
    overlap one another, so they are compared with exclusive ones only.
    """
    rows = sorted(intervals, key=lambda row: (row[0], row[2].index))
    return _on_several_clocks(rows, clocks) if clocks else _on_one_clock(rows)


def _on_one_clock(rows: Iterable[Span]) -> list[Overlap]:
    """An interval that begins at the instant of another's end overlaps it."""
    found: list[Overlap] = []
    last: dict[tuple[str, bool], _Last] = {}  # by lock, and whether it is shared
    for start, end, hold in rows:
        before = _of_another(last.get((hold.lock, False), ()), hold)
        other = None if hold.shared else _of_another(last.get((hold.lock, True), ()), hold)
        if other and (before is None or other[0] > before[0]):
            before = other
        if before is not None and start < before[0]:
            found.append(Overlap(before[1], hold, start, min(end, before[0])))
        key = hold.lock, hold.shared
        last[key] = _later(last.get(key, ()), end, hold)
    return found


def _of_another(last: _Last, hold: Hold) -> tuple[float, Hold] | None:
    """Return the one that ends last among those of other processes than this hold's."""
    for row in last:
        if row[1].process != hold.process:
            return row
    return None


def _later(last: _Last, end: float, hold: Hold) -> _Last:
    """Return the last ends once a hold was added; the earlier of two equal ones stays."""
    if not last:
        return ((end, hold),)
    first = last[0]
    if first[1].process == hold.process:
        return ((end, hold), *last[1:]) if first[0] < end else last
    if first[0] < end:
        return (end, hold), first
    return last if len(last) > 1 and last[1][0] >= end else (first, (end, hold))


def _on_several_clocks(rows: Iterable[Span], clocks: Clocks) -> list[Overlap]:
    found: list[Overlap] = []
    lanes: dict[tuple[str, bool], dict[str | None, _Lane]] = {}
    for start, end, hold in rows:
        rivals = [(hold.lock, False)] if hold.shared else [(hold.lock, False), (hold.lock, True)]
        before = [
            (until, other)
            for rival in rivals
            for node, lane in lanes.get(rival, {}).items()
            for until, other in lane.last(end, clocks.between(hold.node, node), hold)
            if start + clocks.between(hold.node, node) < until
        ]
        if before:
            until, other = max(before, key=lambda one: one[0])
            found.append(Overlap(other, hold, start, min(end, until)))
        lane = lanes.setdefault((hold.lock, hold.shared), {}).setdefault(hold.node, _Lane())
        lane.add(start, end, hold)
    return found


class _Lane:
    """Intervals in order of start, with the one that ends last of every prefix of the list."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._last: list[_Last] = []

    def add(self, start: float, end: float, hold: Hold) -> None:
        self._starts.append(start)
        self._last.append(_later(self._last[-1] if self._last else (), end, hold))

    def last(self, end: float, gap: int, hold: Hold) -> list[tuple[float, Hold]]:
        """Return the one of another process that ends last of those that certainly began before
        `end`."""
        # On one clock, an interval that begins at the instant of an end overlaps.
        place = bisect_left(self._starts, end - gap) if gap else bisect_right(self._starts, end)
        before = _of_another(self._last[place - 1], hold) if place else None
        return [] if before is None else [before]
