"""The unfocused parts of a long run: counts per node and block of time."""

from __future__ import annotations

from typing import Any

from fencepost.report.figures.lanes import Lanes
from fencepost.report.figures.recorded import STATES
from fencepost.report.figures.sampling import Drawn
from fencepost.report.figures.table import table, us

_COUNTS = ("holds", "held", *STATES, "overlaps")
_HOLDS, _HELD, _OVERLAPS = 0, 1, len(_COUNTS) - 1


def blocks(drawn: Drawn, lanes: Lanes) -> dict[str, Any]:
    """Return a row for each lane and block with any activity: holds, how long they were held (µs),
    writes by outcome, and overlaps."""
    focus, found = drawn.focus, dict[tuple[int, int], list[float]]()

    def counts(node: str | None, block: int) -> list[float]:
        return found.setdefault((lanes.of(node), block), [0] * len(_COUNTS))

    for hold in drawn.counted:
        block = focus.block(hold.start)
        row = counts(hold.node, block)
        row[_HOLDS] += 1
        row[_HELD] += max(0, min(hold.strict_end, focus.blocks[block][1]) - hold.start)
    for (node, block), writes in drawn.recorded.counts.items():
        row = counts(node, block)
        for place, many in enumerate(writes, _HELD + 1):
            row[place] += many
    for clash in drawn.counted_clashes:
        counts(clash.overlap.second.node, focus.block(clash.overlap.start))[_OVERLAPS] += 1
    rows = []
    for (lane, block), row in sorted(found.items()):
        start, end = focus.blocks[block]
        row[_HELD] = us(row[_HELD]) or 0
        rows.append((lane, us(start), us(end), *row))
    return table(("lane", "start", "until", *_COUNTS), rows)
