"""What of a long run is drawn one by one, and where the rest is only counted.

A page with every hold of a night is too large to be sent or opened, and most of it shows the same
again and again. So a run of more than `EVENTS` events or `HOLDS` holds has a focus: the spans of
time around what went wrong, the evidence on the page first, then other overlaps; with the room that
is left, the spans around some of its faults. All that happened in them is drawn. The time between
them is cut into blocks, and a block shows how much happened in it. A shorter run is drawn whole.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf

from fencepost.checker.facts.holds import Hold

EVENTS = 120_000
HOLDS = 10_000
"""Holds that are drawn one by one, at most about."""
SPANS = 1000
"""Spans of a focus, at most."""
BLOCKS = 600
"""Blocks of a run without focus; each span of the focus adds two at most."""
LONG = 1000
"""Holds longer than a block that are drawn wherever they are, at most."""

_NEAR_NS = 1_000_000_000
"""What is shown before and after a moment."""
_FAR_NS = 5_000_000_000
"""What is shown at most of a moment that lasts longer, from its begin on and up to it."""

Moment = tuple[float, float]
"""From when until when something happened, in ns."""


class Focus:
    """`spans` [from, until), in order and apart, are drawn whole; `blocks` are the time between.

    A focus without blocks is a whole run.
    """

    def __init__(self, spans: Sequence[Moment], blocks: Sequence[Moment] = ()) -> None:
        self.spans, self.blocks = spans, blocks
        self._spans = [start for start, _ in spans]
        self._blocks = [start for start, _ in blocks]

    def shows(self, start: float, end: float | None = None) -> bool:
        """Whether any of [start, end] is drawn one by one; of one instant, if there is no end."""
        place = bisect_right(self._spans, start if end is None else end) - 1
        return place >= 0 and self.spans[place][1] > start

    def block(self, time: float) -> int:
        """The number of the block that this time is in, or that comes before it."""
        return max(0, bisect_right(self._blocks, time) - 1)


WHOLE = Focus([(-inf, inf)])


def near(start: float, end: float, since: float | None = None) -> Moment:
    """What is to be seen of a moment; `since`: when what led to it began, a hold for example."""
    before = start if since is None else min(since, start)
    return max(before, start - _FAR_NS) - _NEAR_NS, min(end, start + _FAR_NS) + _NEAR_NS


def focus(events: int, found: Sequence[Hold], moments: Iterable[Moment], end_ns: int) -> Focus:
    """The focus on as many of these moments as there is room for, the first ones first.

    `found` are the holds of the run, in order of grant; `events`: how many it has of all kinds.
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
    """The same time, in order, in spans that are apart.

    Out of focus, those that are apart by no more than `least` ns are one.
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
    """The time of the run outside of these spans, in blocks of equal length, cut off at spans."""
    edges = [end_ns * number / BLOCKS for number in range(BLOCKS + 1)]
    edges += [edge for span in spans for edge in span if 0 < edge < end_ns]
    within = Focus(spans)
    found = pairwise(sorted(set(edges)))
    blocks = [(start, end) for start, end in found if not within.shows((start + end) / 2)]
    return blocks or [(0, end_ns)]
