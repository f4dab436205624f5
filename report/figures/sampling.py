"""Selects the holds, overlaps, writes and faults that a page draws one by one.

They come from the checkers' own functions, so that the picture cannot differ from the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.faults import Fault, faults
from fencepost.checker.facts.holds import FOREVER, Hold, holds
from fencepost.checker.facts.overlaps import Overlap, overlaps_of
from fencepost.checker.history.history import History
from fencepost.report.figures.focus import BLOCKS, LONG, Focus, Moment, focus, near
from fencepost.report.figures.grid import Grid
from fencepost.report.figures.recorded import Recorded, recorded

FAULTS = 3000
"""Largest number of faults drawn one by one."""


@dataclass(frozen=True)
class Mention:
    """A moment on the page, in ns, and the names of its holds."""

    start: float
    end: float
    holds: Sequence[str] = ()


@dataclass(frozen=True)
class Clash:
    """An overlap of two believed holds (`leased`), or of two strict ones."""

    overlap: Overlap
    leased: bool


@dataclass(frozen=True)
class Drawn:
    """The selection: `holds`, `clashes`, `faults` and the writes of `recorded` are drawn one by
    one; the rest is counted or shaded. `tokens`: (time, token, state) of some writes that are not
    drawn."""

    focus: Focus
    end_ns: int
    recorded: Recorded
    holds: list[Hold]
    counted: list[Hold]
    clashes: list[Clash]
    counted_clashes: list[Clash]
    faults: list[Fault]
    shaded: list[Fault]
    tokens: list[tuple[int, Any, str]]

    def numbers(self) -> dict[str, tuple[int, int]]:
        """Return for each kind how many are drawn one by one, and the total."""
        return {
            "holds": (len(self.holds), len(self.holds) + len(self.counted)),
            "writes": (len(self.recorded.writes), self.recorded.written),
            "overlaps": (len(self.clashes), len(self.clashes) + len(self.counted_clashes)),
            "faults": (len(self.faults), len(self.faults) + len(self.shaded)),
        }


def drawn(history: History, test: Mapping[str, Any], mentions: Sequence[Mention] = ()) -> Drawn:
    """Choose what is drawn. `told`: the moments that the page mentions, the most important
    first."""
    found, on, end_ns = holds(history, test), faults(history), _length_ns(history, test)
    clashes = list(_clashes(history, test))
    mentioned_names = {name for moment in mentions for name in moment.holds}
    mentioned = {hold.name: hold for hold in found if hold.name in mentioned_names}
    in_focus = focus(len(history), found, _moments(mentions, mentioned, clashes, on), end_ns)
    shown, counted = _divided(found, mentioned, in_focus, end_ns)
    places = {hold.index for hold in shown}
    both = [{clash.overlap.first.index, clash.overlap.second.index} <= places for clash in clashes]
    telling = [fault for fault in on if _tells(fault, in_focus)]
    others = [fault for fault in on if not _tells(fault, in_focus)]
    grid = _token_grid(found, end_ns)
    granted = [
        (hold.start, hold.token, "granted")
        for hold in counted
        if hold.token is not None and grid.takes(hold.start, hold.token, "granted")
    ]
    seen = recorded(history, in_focus, grid)
    return Drawn(
        focus=in_focus,
        end_ns=end_ns,
        recorded=seen,
        holds=shown,
        counted=counted,
        clashes=[clash for clash, all_there in zip(clashes, both, strict=True) if all_there],
        counted_clashes=[c for c, all_there in zip(clashes, both, strict=True) if not all_there],
        faults=telling[:FAULTS],
        shaded=others + telling[FAULTS:],
        tokens=granted + seen.others,
    )


def _length_ns(history: History, test: Mapping[str, Any]) -> int:
    """Return the length of the picture: to the last op, or the planned duration if there are no
    ops."""
    return history.end_ns or int(float(test.get("time_s") or 1) * 1e9)


def _clashes(history: History, test: Mapping[str, Any]) -> Iterator[Clash]:
    clocks = Clocks(test)
    for overlap in overlaps_of(history, test, "strict", clocks):
        yield Clash(overlap, False)
    for overlap in overlaps_of(history, test, "believed", clocks):
        yield Clash(overlap, True)


def _moments(
    mentions: Iterable[Mention],
    mentioned: Mapping[str, Hold],
    clashes: Sequence[Clash],
    on: Sequence[Fault],
) -> Iterator[Moment]:
    """Return the moments to focus on, the most important first."""
    for moment in mentions:
        starts = [mentioned[name].start for name in moment.holds if name in mentioned]
        yield near(moment.start, moment.end, min(starts, default=None))
    # Take some from every part of the run.
    for clash in Random(0).sample(clashes, len(clashes)):
        overlap = clash.overlap
        yield near(overlap.start, overlap.end, overlap.first.start)
    for fault in Random(0).sample(on, len(on)):
        yield near(fault.start, fault.start if fault.end is None else fault.end)


def _divided(
    found: Iterable[Hold], mentioned: Mapping[str, Hold], focus: Focus, end_ns: int
) -> tuple[list[Hold], list[Hold]]:
    """Divide holds into drawn and counted. Drawn are also those that the page names, and those too
    long for any block."""
    shown: list[Hold] = []
    counted: list[Hold] = []
    room = LONG
    for hold in found:
        long = room > 0 and hold.strict_end - hold.start > end_ns / BLOCKS
        if focus.shows(hold.start, max(hold.start, hold.strict_end)) or hold.name in mentioned:
            shown.append(hold)
        elif long:
            room -= 1
            shown.append(hold)
        else:
            counted.append(hold)
    return shown, counted


def _token_grid(found: list[Hold], end_ns: int) -> Grid:
    tokens = [hold.token for hold in found if hold.token is not None]
    return Grid(end_ns, min(tokens, default=0), max(tokens, default=0))


def _tells(fault: Fault, focus: Focus) -> bool:
    return not fault.proved or focus.shows(fault.start, FOREVER if fault.end is None else fault.end)
