"""Data of the timeline: lanes, holds, overlaps, writes, faults and blocks, as plain tables.

The browser only draws. For a long run it gets the events that are drawn one by one (sampling.py)
and, between them, blocks with counts per node (blocks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import FOREVER, Hold
from fencepost.report.figures.blocks import blocks
from fencepost.report.figures.focus import BLOCKS, apart
from fencepost.report.figures.grants_by_server import voters, votes
from fencepost.report.figures.lanes import Lanes, affected, struck
from fencepost.report.figures.recorded import Write
from fencepost.report.figures.sampling import Drawn
from fencepost.report.figures.table import digits, short, table, us

_HOLD = (
    *("lane", "row", "name", "lock", "process", "token"),
    *("start", "believed", "deadline", "until", "ended_by"),
)
_OVERLAP = ("first", "second", "start", "until", "believed")
_WRITE = ("lane", "time", "sent", "state", "value", "token", "hold", "error")
_FAULT = ("words", "family", "start", "until", "lanes", "edges", "proved")


def timeline(drawn: Drawn, test: Mapping[str, Any]) -> dict[str, Any]:
    """Build all tables of the timeline, ready for JSON."""
    lanes = Lanes(test, _nodes(drawn), [*drawn.faults, *drawn.shaded], voters(drawn.holds))
    places = lanes.rows(drawn.holds)
    return {
        "end": us(drawn.end_ns),
        "lanes": table(("name", "kind", "depth"), lanes),
        "holds": table(_HOLD, map(_hold, drawn.holds, places)),
        "overlaps": table(_OVERLAP, _overlaps(drawn)),
        "writes": table(_WRITE, (_write(write, lanes) for write in drawn.recorded.writes)),
        "tokens": table(
            ("time", "token", "state"),
            ((us(time), digits(token), state) for time, token, state in drawn.tokens),
        ),
        "faults": table(_FAULT, (_fault(fault, lanes) for fault in drawn.faults)),
        "shade": list(_shades(drawn, [*drawn.faults, *drawn.shaded])),
        "shades": table(("lane", "start", "until"), _lane_shades(drawn, lanes)),
        "blocks": blocks(drawn, lanes),
        **votes(drawn.holds, lanes),
    }


def _nodes(drawn: Drawn) -> Iterator[str | None]:
    for found in (drawn.holds, drawn.counted, drawn.recorded.writes):
        yield from dict.fromkeys(one.node for one in found)
    yield from (node for node, _ in drawn.recorded.counts)


def _hold(hold: Hold, place: tuple[int, int]) -> tuple[Any, ...]:
    return (
        *place,
        short(hold.name),
        short(hold.lock),
        hold.process,
        digits(hold.token),
        us(hold.start),
        [[us(start), us(end)] for start, end in hold.believed],
        us(hold.deadline),
        us(hold.strict_end),
        hold.ended_by,
    )


def _overlaps(drawn: Drawn) -> Iterator[tuple[Any, ...]]:
    """Return overlaps of strict holds and of believed ones, with holds by their position in the
    table."""
    place = {hold.index: number for number, hold in enumerate(drawn.holds)}
    for clash in drawn.clashes:
        overlap = clash.overlap
        first, second = place[overlap.first.index], place[overlap.second.index]
        yield first, second, us(overlap.start), us(overlap.end), clash.leased


def _write(write: Write, lanes: Lanes) -> tuple[Any, ...]:
    """Return a write at the time of its answer, or of its sending if it was not answered."""
    return (
        lanes.of(write.node),
        us(write.time),
        us(write.sent),
        write.state,
        short(write.value),
        digits(write.token),
        short(write.hold),
        short(write.error),
    )


def _fault(fault: Fault, lanes: Lanes) -> tuple[Any, ...]:
    about = lanes.all_of(struck(fault))
    edges = [lane for lane in lanes.all_of(affected(fault)) if lane not in about]
    end = None if fault.end is None else us(fault.end)
    return short(fault.what), fault.family, us(fault.start), end, about, edges, fault.proved


def _shades(drawn: Drawn, on: Iterable[Fault]) -> Iterator[tuple[int | None, ...]]:
    """Return when any of these faults was active: from, until, sorted and disjoint; until None for
    never."""
    spans = ((fault.start, FOREVER if fault.end is None else fault.end) for fault in on)
    for start, end in apart(spans, drawn.end_ns / BLOCKS, drawn.focus):
        yield us(start), us(end)


def _lane_shades(drawn: Drawn, lanes: Lanes) -> Iterator[tuple[int | None, ...]]:
    """Return when faults that are not drawn were active at the node of each lane."""
    by_lane: dict[int, list[Fault]] = {}
    for fault in drawn.shaded:
        for lane in lanes.all_of(struck(fault)):
            by_lane.setdefault(lane, []).append(fault)
    for lane, its in by_lane.items():
        yield from ((lane, *span) for span in _shades(drawn, its))
