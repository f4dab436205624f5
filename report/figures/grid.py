"""Thins out the points of a whole-run chart: the first of those that would overlap."""

from __future__ import annotations

from collections.abc import Hashable

COLUMNS, ROWS = 600, 60


class Grid:
    """Cells of a chart from time 0 to `end` and from `low` to `high`; each cell takes one point of
    a kind."""

    def __init__(self, end: int, low: float, high: float) -> None:
        self._end, self._low, self._span = max(end, 1), low, max(high - low, 1)
        self._taken: set[tuple[Hashable, int, int]] = set()

    def takes(self, time: int, value: float, kind: Hashable) -> bool:
        """Return whether the point's cell had no point of this kind yet."""
        column = time * COLUMNS // self._end
        cell = kind, column, int((value - self._low) * ROWS // self._span)
        if cell in self._taken:
            return False
        self._taken.add(cell)
        return True
