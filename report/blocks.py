"""The parts of a long run that are out of focus: how much each node did in each block of time."""

from __future__ import annotations

from typing import Any

from fencepost.checker.holds import Hold, Overlap
from fencepost.report.focus import Focus
from fencepost.report.lanes import Lanes
from fencepost.report.recorded import STATES
from fencepost.report.table import table, us

_COUNTS = ("holds", "held", *STATES, "overlaps")
_HOLDS, _HELD, _OVERLAPS = 0, 1, len(_COUNTS) - 1


class Blocks:
    """`held` is for how long (ns) the node had a lock. `long`: how many holds were too long."""

    def __init__(
        self, focus: Focus, lanes: Lanes, writes: dict[tuple[str | None, int], list[int]]
    ) -> None:
        self.long = 0
        self._focus, self._lanes = focus, lanes
        self._found: dict[tuple[int, int], list[float]] = {}
        for (node, block), counts in writes.items():
            row = self._row(node, block)
            for place, many in enumerate(counts, 2):
                row[place] += many

    def add(self, hold: Hold) -> None:
        block = self._focus.block(hold.start)
        row = self._row(hold.node, block)
        row[_HOLDS] += 1
        row[_HELD] += max(0, min(hold.strict_end, self._focus.blocks[block][1]) - hold.start)

    def add_overlap(self, overlap: Overlap) -> None:
        self._row(overlap.second.node, self._focus.block(overlap.start))[_OVERLAPS] += 1

    def _row(self, node: str | None, block: int) -> list[float]:
        return self._found.setdefault((self._lanes.of(node), block), [0] * len(_COUNTS))

    def table(self) -> dict[str, Any]:
        rows = []
        for (lane, block), counts in sorted(self._found.items()):
            start, end = self._focus.blocks[block]
            counts[_HELD] = us(counts[_HELD]) or 0
            rows.append((lane, us(start), us(end), *counts))
        return table(("lane", "start", "until", *_COUNTS), rows)
