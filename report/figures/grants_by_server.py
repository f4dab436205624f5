"""Which server granted which hold, and when one server had granted two.

Only a client that asks several servers says which of them granted (`granted_by`); Redlock's does.
A grant is drawn from when it was heard of until its holder no longer believed in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fencepost.checker.facts.holds import FOREVER, Hold
from fencepost.report.figures.lanes import Lanes
from fencepost.report.figures.table import table, us

_Vote = tuple[int, float, float, bool]
"""A hold by its position, from when until when, and whether it is shared."""


def voters(found: Iterable[Hold]) -> set[str]:
    """The servers that granted any of these holds."""
    return {server for hold in found for server in hold.granted_by}


def votes(found: Sequence[Hold], lanes: Lanes) -> dict[str, Any]:
    """Tables: `votes`, with holds by their position in `found`, and `twice`, when a server had
    granted a lock to two."""
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
    """Shared holds of one lock may be granted beside one another, and beside no exclusive one."""
    for (lane, _), its in by_lane.items():
        last = {True: -FOREVER, False: -FOREVER}
        for _, start, end, shared in sorted(its, key=lambda vote: vote[1]):
            rivals = last[False] if shared else max(last.values())
            if start < rivals:
                yield lane, us(start), us(min(end, rivals))
            last[shared] = max(last[shared], end)
