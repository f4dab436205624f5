"""The overlap diagram: both holds over time, which servers granted them, and the active faults.

It shows the first piece of evidence that names two holds, and nothing else; the timeline shows the
same among everything else. Positions are per cent of the time shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import FOREVER, Hold, seconds
from fencepost.report.figures.lanes import struck
from fencepost.report.figures.table import short, us

SERVERS = 9
"""Largest number of servers shown."""
_FAR_NS = 5e9
"""Longest time shown before the overlap, and of the overlap itself."""
_OFTEN = 2
"""A fault at more rows than this is named once, below the diagram."""
_FAULTS = 4
"""Largest number of faults shown for one node."""


@dataclass(frozen=True)
class Bar:
    """A bar from `left`, `width` wide; `what` is its style, `title` its tooltip."""

    left: float
    width: float
    what: str
    title: str = ""


@dataclass(frozen=True)
class Row:
    """One node: its name, a description, its faults and its bars."""

    name: str
    said: str
    faults: list[str]
    bars: list[Bar] = field(default_factory=list)
    twice: bool = False


@dataclass(frozen=True)
class Step:
    """A link of the cause: at `time_ns`, if it is known; `sure` or inferred."""

    what: str
    time_ns: float | None
    sure: bool


@dataclass(frozen=True)
class Look:
    """The two holds and their cause, from `start` until `end` (ns). `at` is the position on the
    timeline; `common`: the faults at many of the rows."""

    start: float
    end: float
    rows: list[Row]
    steps: list[Step]
    about: str
    at: dict[str, Any]
    common: list[str]
    left_out: int = 0


def look(
    pieces: Iterable[Mapping[str, Any]],
    found: Sequence[Hold],
    on: Sequence[Fault],
    test: Mapping[str, Any],
) -> Look | None:
    """Return the diagram of the first of these pieces of evidence that is about two of these
    holds."""
    named = {hold.name: hold for hold in found}
    for piece in pieces:
        names = [str(name) for name in piece.get("holds") or ()]
        start, end = piece.get("time_ns"), piece.get("until_ns")
        if len(names) == 2 and isinstance(start, int | float) and all(n in named for n in names):
            both = sorted((named[name] for name in names), key=lambda hold: hold.start)
            until = end if isinstance(end, int | float) else both[0].strict_end
            return _of(piece, both, start, until, on, test)
    return None


def _of(
    piece: Mapping[str, Any],
    both: Sequence[Hold],
    start: float,
    end: float,
    on: Sequence[Fault],
    test: Mapping[str, Any],
) -> Look:
    shown_end = min(end, start + _FAR_NS)
    first = max(both[0].asked, start - _FAR_NS)
    pad = max((shown_end - first) * 0.08, 1e6)
    scale = _Scale(first - pad, shown_end + pad)
    nodes = {hold.node for hold in both}
    granting = {server for hold in both for server in hold.granted_by}
    near = [fault for fault in on if scale.shows(fault.start, fault.end)]
    troubled = {node for fault in near for node in struck(fault)}
    servers = [str(one) for one in test.get("servers") or () if one in granting | troubled]
    servers += sorted(granting - set(servers))
    rows = [_holder(hold, number, near, scale) for number, hold in enumerate(both)]
    rows += [_server(name, both, near, scale) for name in servers[:SERVERS] if name not in nodes]
    for row in rows:
        row.bars.insert(0, scale.bar(start, end, "both"))
    common = _common(rows)
    return Look(
        scale.start,
        scale.end,
        rows,
        sorted(_steps(piece), key=lambda step: FOREVER if step.time_ns is None else step.time_ns),
        f"{seconds(start)} to {seconds(end)}",
        {
            "from": us(start),
            "until": us(end) or us(start),
            "holds": [hold.name for hold in both],
        },
        common,
        len(servers[SERVERS:]),
    )


def _common(rows: Sequence[Row]) -> list[str]:
    """Remove faults shown at many rows, and return them so that they are named once."""
    often = Counter(fault for row in rows for fault in row.faults)
    common = [fault for fault, count in often.items() if count > _OFTEN]
    for row in rows:
        row.faults[:] = [fault for fault in row.faults if fault not in common]
    return common


class _Scale:
    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = max(start, 0), end

    def shows(self, start: float, end: float | None) -> bool:
        return start <= self.end and (end is None or end >= self.start)

    def bar(self, start: float, end: float | None, what: str, title: str = "") -> Bar:
        left = max(start, self.start)
        right = min(self.end, FOREVER if end is None else end)
        per = 100 / (self.end - self.start)
        return Bar(
            round((left - self.start) * per, 3), round(max(0, right - left) * per, 3), what, title
        )


_WHICH = ("one", "two")


def _holder(hold: Hold, number: int, on: Sequence[Fault], scale: _Scale) -> Row:
    bars, troubles = _faults(hold.node or "", on, scale)
    if hold.strict_end > hold.believed_end and scale.shows(hold.believed_end, hold.strict_end):
        until = seconds(hold.strict_end)
        title = f"hold {hold.name} after its lease, until {until}"
        bars.append(scale.bar(hold.believed_end, hold.strict_end, f"past {_WHICH[number]}", title))
    for start, end in hold.believed:
        if scale.shows(start, end):
            title = f"hold {hold.name}, from {seconds(start)} to {seconds(end)}"
            bars.append(scale.bar(start, end, _WHICH[number], title))
    return Row(hold.who, f"hold {hold.name}, granted at {seconds(hold.start)}", troubles, bars)


def _server(name: str, both: Sequence[Hold], on: Sequence[Fault], scale: _Scale) -> Row:
    bars, troubles = _faults(name, on, scale)
    granted = []
    for number, hold in enumerate(both):
        if name in hold.granted_by:
            granted.append(hold.name)
            if not scale.shows(hold.start, hold.believed_end):
                continue
            title = f"{name} granted hold {hold.name} at {seconds(hold.start)}"
            end = hold.believed_end
            bars.append(scale.bar(hold.start, end, f"vote {_WHICH[number]}", title))
    # A server that grants again after the first lease expired, or after a release, is right.
    twice = len(granted) > 1 and both[1].start < both[0].believed_end
    said = f"granted hold {' and then '.join(granted)}" if granted else ""
    return Row(name, "granted both" if twice else said, troubles, bars, twice)


def _faults(node: str, on: Sequence[Fault], scale: _Scale) -> tuple[list[Bar], list[str]]:
    its = [fault for fault in on if node in struck(fault)][:_FAULTS]
    bars = [scale.bar(fault.start, fault.end, "fault", fault.describe()) for fault in its]
    return bars, list(dict.fromkeys(str(short(fault.what)) for fault in its))


def _steps(piece: Mapping[str, Any]) -> Iterator[Step]:
    for link in piece.get("cause") or ():
        if isinstance(link, Mapping):
            time_ns = link.get("time_ns")
            known = float(time_ns) if isinstance(time_ns, int | float) else None
            yield Step(str(link.get("what", "")), known, link.get("sure") is True)
