"""Which parts of a long run are drawn event by event, and which are only counted.

A page with every hold of a long run is too large to send or open, and most of it repeats. So a run
of more than `EVENTS` events or `HOLDS` holds has a focus: spans of time around violations (first
the evidence on the page, then other overlaps) and, if room is left, around some of its faults.
Everything within these spans is drawn. The time between them is cut into blocks, which show counts.
A shorter run is drawn in full.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf

from fencepost.checker.facts.holds import Hold

EVENTS = 120_000
HOLDS = 10_000
"""Approximate limit on the holds that are drawn one by one."""
SPANS = 1000
"""Largest number of spans in a focus."""
BLOCKS = 600
"""Blocks of a run without focus; each span of the focus adds at most two."""
LONG = 1000
"""Largest number of holds longer than a block that are drawn wherever they are."""

_NEAR_NS = 1_000_000_000
"""Time shown before and after a moment."""
_FAR_NS = 5_000_000_000
"""Longest part of a moment shown: from its begin, and up to its end."""

Moment = tuple[float, float]
"""Begin and end of an event, in ns."""


class Focus:
    """The spans that are drawn and the blocks that are counted.

    `spans` [from, until) are sorted and disjoint, and drawn in full; `blocks` are the time between.
    A focus without blocks is a whole run.
    """

    def __init__(self, spans: Sequence[Moment], blocks: Sequence[Moment] = ()) -> None:
        self.spans, self.blocks = spans, blocks
        self._spans = [start for start, _ in spans]
        self._blocks = [start for start, _ in blocks]

    def shows(self, start: float, end: float | None = None) -> bool:
        """Return whether any part of [start, end] is drawn one by one; without `end`, of the
        instant `start`."""
        place = bisect_right(self._spans, start if end is None else end) - 1
        return place >= 0 and self.spans[place][1] > start

    def block(self, time: float) -> int:
        """Return the number of the block that contains this time, or the one before it."""
        return max(0, bisect_right(self._blocks, time) - 1)


WHOLE = Focus([(-inf, inf)])


def near(start: float, end: float, since: float | None = None) -> Moment:
    """Return the time to show around a moment. `since`: the begin of its cause, for example a
    hold."""
    before = start if since is None else min(since, start)
    return max(before, start - _FAR_NS) - _NEAR_NS, min(end, start + _FAR_NS) + _NEAR_NS


def focus(events: int, found: Sequence[Hold], moments: Iterable[Moment], end_ns: int) -> Focus:
    """Focus on as many of these moments as there is room for, the first ones first.

    `found` are the holds of the run, in order of grant; `events`: its number of events of all
    kinds.
    """
    if events <= EVENTS and len(found) <= HOLDS:
        return WHOLE
    taken = bytearray(len(found))
    room, spans = HOLDS, []
    for start, end in moments:
        first = bisect_left(found, start, key=lambda hold: hold.start)
        last = bisect_left(found, end, first, key=lambda hold: hold.start)
        more = taken.count(0, first, last)
        if more <= room:
            taken[first:last] = b"\1" * (last - first)
            room -= more
            spans.append((start, end))
        if room < HOLDS // 100 or len(spans) == SPANS:
            break
    shown = apart(spans)
    return Focus(shown, _between(shown, end_ns))


def apart(spans: Iterable[Moment], least: float = 0, focus: Focus | None = None) -> list[Moment]:
    """Merge spans into sorted, disjoint ones that cover the same time.

    Spans that are no more than `least` ns apart are joined.
    """
    found: list[Moment] = []
    for start, end in sorted(spans):
        if found and (
            start <= found[-1][1]
            or (focus and start <= found[-1][1] + least and not focus.shows(found[-1][1], start))
        ):
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _between(spans: list[Moment], end_ns: int) -> list[Moment]:
    """Cut the time outside these spans into blocks of equal length, ending at the spans."""
    edges = [end_ns * number / BLOCKS for number in range(BLOCKS + 1)]
    edges += [edge for span in spans for edge in span if 0 < edge < end_ns]
    within = Focus(spans)
    found = pairwise(sorted(set(edges)))
    blocks = [(start, end) for start, end in found if not within.shows((start + end) / 2)]
    return blocks or [(0, end_ns)]
