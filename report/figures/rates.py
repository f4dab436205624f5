"""Rates over time: ops invoked and holds granted per second."""

from __future__ import annotations

from collections.abc import Iterator

SPANS = 150
"""Largest number of spans that a run is cut into."""
_SHORTEST_NS = 100_000_000


class Rates:
    """Counts ops and grants in spans of equal length, from the test's start to `end_ns`."""

    def __init__(self, end_ns: int) -> None:
        count = min(SPANS, max(1, end_ns // _SHORTEST_NS))
        self._width = max(end_ns, 1) / count
        self._ops, self._grants = [0] * count, [0] * count

    def op(self, time_ns: int) -> None:
        self._ops[self._span(time_ns)] += 1

    def grant(self, time_ns: int) -> None:
        self._grants[self._span(time_ns)] += 1

    def _span(self, time_ns: int) -> int:
        return min(int(time_ns / self._width), len(self._ops) - 1)

    def __iter__(self) -> Iterator[tuple[float, float, float, float]]:
        """Yield for each span its begin and end (ns), and its ops and grants per second."""
        per_s = 1e9 / self._width
        for number, (ops, grants) in enumerate(zip(self._ops, self._grants, strict=True)):
            start = number * self._width
            yield start, start + self._width, ops * per_s, grants * per_s
