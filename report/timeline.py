"""What the timeline draws: lanes, holds, overlaps, writes, faults and blocks, as plain tables.

The browser draws and decides nothing: which holds there are, until when they were believed
and which overlap is asked of the checkers' own functions, so that the picture cannot differ
from the verdict. Of a long run that is what lies in its focus (focus.py); between, a block has the
counts of what a node did (blocks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from fencepost.checker.clocks import Clocks
from fencepost.checker.faults import Fault, faults
from fencepost.checker.history import History
from fencepost.checker.holds import FOREVER, Hold, Overlap, believed, holds, overlaps, strictly
from fencepost.report.blocks import Blocks
from fencepost.report.focus import BLOCKS, LONG, Focus, Moment, apart, focus, near
from fencepost.report.grid import Grid
from fencepost.report.lanes import Lanes, affected, struck
from fencepost.report.recorded import Recorded, Write, recorded
from fencepost.report.table import digits, short, table, us

_HOLD = (
    *("lane", "row", "name", "lock", "process", "token"),
    *("start", "believed", "deadline", "until", "ended_by"),
)
_OVERLAP = ("first", "second", "start", "until", "believed")
_WRITE = ("lane", "time", "sent", "state", "value", "token", "hold", "error")
_FAULT = ("words", "family", "start", "until", "lanes", "edges", "proved")

FAULTS = 3000
"""Faults that are drawn one by one, at most; where there are others, their lanes are shaded."""
_SHADES = 600  # of a run's length: what is apart by less has one shade then


@dataclass(frozen=True)
class Timeline:
    """`tables` are ready for JSON; `recorded` is what else was seen on the way.

    `drawn`: by name, how many are drawn one by one, and of how many.
    """

    tables: dict[str, Any]
    recorded: Recorded
    focus: Focus
    end_ns: int
    drawn: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class _Clash:
    """An overlap of two strict holds, or of two believed ones."""

    overlap: Overlap
    leased: bool


@dataclass(frozen=True)
class Told:
    """A moment that the page tells of, in ns, and the names of the holds that it is about."""

    start: float
    end: float
    holds: Sequence[str] = ()


def timeline(history: History, test: Mapping[str, Any], told: Sequence[Told] = ()) -> Timeline:
    """Everything the timeline needs; `told` in order of importance."""
    found, on, end_ns = holds(history, test), faults(history), _length_ns(history, test)
    clashes = list(_clashes(found, Clocks(test)))
    asked = {name for moment in told for name in moment.holds}
    named = {hold.name: hold for hold in found if hold.name in asked}
    on_page = focus(found, _moments(told, named, clashes, on), end_ns)
    grid = _token_grid(found, end_ns)
    seen = recorded(history, on_page, grid)
    lanes = Lanes(test, _nodes(found, seen), on)
    blocks = Blocks(on_page, lanes, seen.counts)
    shown, others = [], []
    for hold in found:
        if hold.name in named or _is_shown(hold, on_page, blocks, end_ns):
            shown.append(hold)
        else:
            blocks.add(hold)
            if hold.token is not None and grid.takes(hold.start, hold.token, "granted"):
                others.append((hold.start, hold.token, "granted"))
    overlapping = list(_overlaps(shown, clashes, blocks))
    struck_by = [fault for fault in on if _tells(fault, on_page)][:FAULTS]
    least = 0 if len(struck_by) == len(on) else end_ns / _SHADES
    tables = {
        "end": us(end_ns),
        "holds": table(_HOLD, map(_hold, shown, lanes.rows(shown))),
        "overlaps": table(_OVERLAP, overlapping),
        "writes": table(_WRITE, (_write(write, lanes) for write in seen.writes)),
        "tokens": table(
            ("time", "token", "state"),
            ((us(time), digits(token), state) for time, token, state in [*others, *seen.others]),
        ),
        "faults": table(_FAULT, (_fault(fault, lanes) for fault in struck_by)),
        "shade": list(_shades(on, least)),
        "shades": table(("lane", "start", "until"), _lane_shades(on, lanes, least)),
        "blocks": blocks.table(),
    }
    tables["lanes"] = table(("name", "kind", "depth"), lanes)
    drawn = {
        "holds": (len(shown), len(found)),
        "writes": (len(seen.writes), seen.written),
        "overlaps": (len(overlapping), len(clashes)),
        "faults": (len(struck_by), len(on)),
    }
    return Timeline(tables, seen, on_page, end_ns, drawn)


def _length_ns(history: History, test: Mapping[str, Any]) -> int:
    """How long the picture is: to the last op, or as long as the test was to run if it has none."""
    return history.end_ns or int(float(test.get("time_s") or 1) * 1e9)


def _clashes(found: list[Hold], clocks: Clocks) -> Iterator[_Clash]:
    for overlap in overlaps(strictly(found), clocks):
        yield _Clash(overlap, False)
    for overlap in overlaps(believed(found), clocks):
        yield _Clash(overlap, True)


def _moments(
    told: Iterable[Told],
    named: Mapping[str, Hold],
    clashes: Sequence[_Clash],
    on: Sequence[Fault],
) -> Iterator[Moment]:
    """What is to be in focus, the most important first."""
    for moment in told:
        starts = [named[name].start for name in moment.holds if name in named]
        yield near(moment.start, moment.end, min(starts, default=None))
    # Some from every part of the run.
    for clash in Random(0).sample(clashes, len(clashes)):
        overlap = clash.overlap
        yield near(overlap.start, overlap.end, overlap.first.start)
    for fault in Random(0).sample(on, len(on)):
        yield near(fault.start, fault.start if fault.end is None else fault.end)


def _token_grid(found: list[Hold], end_ns: int) -> Grid:
    tokens = [hold.token for hold in found if hold.token is not None]
    return Grid(end_ns, min(tokens, default=0), max(tokens, default=0))


def _nodes(found: Iterable[Hold], seen: Recorded) -> Iterator[str | None]:
    yield from dict.fromkeys(hold.node for hold in found)
    yield from (write.node for write in seen.writes)
    yield from (node for node, _ in seen.counts)


def _is_shown(hold: Hold, focus: Focus, blocks: Blocks, end_ns: int) -> bool:
    """Whether a hold is drawn: in focus, or so long that no block could tell of it."""
    if focus.shows(hold.start, max(hold.start, hold.strict_end)):
        return True
    if hold.strict_end - hold.start > end_ns / BLOCKS and blocks.long < LONG:
        blocks.long += 1
        return True
    return False


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


def _overlaps(
    shown: list[Hold], clashes: Iterable[_Clash], blocks: Blocks
) -> Iterator[tuple[Any, ...]]:
    """Overlaps of holds that are drawn, by their position in the table; the others are counted."""
    place = {hold.index: number for number, hold in enumerate(shown)}
    for clash in clashes:
        overlap = clash.overlap
        first, second = place.get(overlap.first.index), place.get(overlap.second.index)
        if first is None or second is None:
            blocks.add_overlap(overlap)
        else:
            yield first, second, us(overlap.start), us(overlap.end), clash.leased


def _write(write: Write, lanes: Lanes) -> tuple[Any, ...]:
    """A write at the time it was answered, or sent where no answer came."""
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


def _tells(fault: Fault, focus: Focus) -> bool:
    return not fault.proved or focus.shows(fault.start, FOREVER if fault.end is None else fault.end)


def _fault(fault: Fault, lanes: Lanes) -> tuple[Any, ...]:
    about = lanes.all_of(struck(fault))
    edges = [lane for lane in lanes.all_of(affected(fault)) if lane not in about]
    end = None if fault.end is None else us(fault.end)
    return short(fault.what), fault.family, us(fault.start), end, about, edges, fault.proved


def _lane_shades(
    on: Sequence[Fault], lanes: Lanes, least: float
) -> Iterator[tuple[int | None, ...]]:
    """When faults were on that are about the node of each lane, drawn one by one or not."""
    by_lane: dict[int, list[Fault]] = {}
    for fault in on if least else ():
        for lane in lanes.all_of(struck(fault)):
            by_lane.setdefault(lane, []).append(fault)
    for lane, its in by_lane.items():
        yield from ((lane, start, until) for start, until in _shades(its, least))


def _shades(on: Iterable[Fault], least: float) -> Iterator[tuple[int | None, int | None]]:
    """When any of these faults was on: from, until, in order and apart by more than `least` ns;
    until None for never."""
    spans = ((fault.start, FOREVER if fault.end is None else fault.end) for fault in on)
    return ((us(start), us(end)) for start, end in apart(spans, least))
