"""Which server granted which hold, and when one server had granted two.

Only a client that asks several servers says which of them granted (`granted_by`); Redlock's does.
A grant is drawn from when it was heard of until its holder no longer believed in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fencepost.checker.holds import FOREVER, Hold
from fencepost.report.lanes import Lanes
from fencepost.report.table import table, us


def voters(found: Iterable[Hold]) -> set[str]:
    """The servers that granted any of these holds."""
    return {server for hold in found for server in hold.granted_by}


def votes(found: Sequence[Hold], lanes: Lanes) -> dict[str, Any]:
    """Tables: `votes`, with holds by their position in `found`, and `twice`, when a server had
    granted a lock to two."""
    by_lane: dict[tuple[int, str], list[tuple[int, float, float]]] = {}
    for place, hold in enumerate(found):
        if hold.believed:
            for lane in lanes.all_of(hold.granted_by):
                row = (place, hold.start, hold.believed_end)
                by_lane.setdefault((lane, hold.lock), []).append(row)
    rows = [(lane, *row) for (lane, _), its in by_lane.items() for row in its]
    return {
        "votes": table(
            ("lane", "hold", "start", "until"),
            ((lane, place, us(start), us(end)) for lane, place, start, end in rows),
        ),
        "twice": table(("lane", "start", "until"), _twice(by_lane)),
    }


def _twice(
    by_lane: Mapping[tuple[int, str], list[tuple[int, float, float]]],
) -> Iterator[tuple[int, int | None, int | None]]:
    for (lane, _), its in by_lane.items():
        last = -FOREVER
        for _, start, end in sorted(its, key=lambda row: row[1]):
            if start < last:
                yield lane, us(start), us(min(end, last))
            last = max(last, end)
