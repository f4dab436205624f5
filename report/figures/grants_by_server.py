"""Which server granted which hold, and when one server had granted two.

Only clients that ask several servers, such as Redlock's, report which of them granted
(`granted_by`). A grant is drawn from the time its holder reported it until the holder no longer
believed in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fencepost.checker.facts.holds import FOREVER, Hold
from fencepost.report.figures.lanes import Lanes
from fencepost.report.figures.table import table, us

_Vote = tuple[int, float, float, bool]
"""A hold by its position, its begin and end, and whether it is shared."""


def voters(found: Iterable[Hold]) -> set[str]:
    """Return the servers that granted any of these holds."""
    return {server for hold in found for server in hold.granted_by}


def votes(found: Sequence[Hold], lanes: Lanes) -> dict[str, Any]:
    """Build the tables `votes`, with holds by their position in `found`, and `twice`, when a server
    had granted a lock to two holders."""
    by_lane: dict[tuple[int, str], list[_Vote]] = {}
    for place, hold in enumerate(found):
        if hold.believed:
            for lane in lanes.all_of(hold.granted_by):
                vote = (place, hold.start, hold.believed_end, hold.shared)
                by_lane.setdefault((lane, hold.lock), []).append(vote)
    rows = [(lane, *vote[:3]) for (lane, _), its in by_lane.items() for vote in its]
    return {
        "votes": table(
            ("lane", "hold", "start", "until"),
            ((lane, place, us(start), us(end)) for lane, place, start, end in rows),
        ),
        "twice": table(("lane", "start", "until"), _twice(by_lane)),
    }


def _twice(
    by_lane: Mapping[tuple[int, str], list[_Vote]],
) -> Iterator[tuple[int, int | None, int | None]]:
    """Find overlapping grants. Shared holds of one lock may overlap one another, but no exclusive
    one."""
    for (lane, _), its in by_lane.items():
        last = {True: -FOREVER, False: -FOREVER}
        for _, start, end, shared in sorted(its, key=lambda vote: vote[1]):
            rivals = last[False] if shared else max(last.values())
            if start < rivals:
                yield lane, us(start), us(min(end, rivals))
            last[shared] = max(last[shared], end)
