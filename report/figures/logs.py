"""Excerpts of the servers' logs around violations, with their times as times of the run.

A server stamps its log by its own wall clock. The run records when it began by the harness' clock
(`began_unix_s` in run.json), so that both can be compared. A clock that a fault has set shifts its
server's lines; the page names such servers.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from fencepost import plainfile

MOMENTS = 3
"""Largest number of moments around which logs are shown."""
LINES = 40
"""Largest number of lines of one server around one moment."""
LONGEST = 400
"""Longest line in characters; longer lines are cut."""
_LED_NS = 10e9
"""The cause of a moment is included if it was no longer ago than this."""
_NEAR_NS = 1e9
_FAR_NS = 15e9
"""Part of a longer moment that is included, from its begin."""

_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: f"{number:02}" for number, name in enumerate(_NAMES, 1)}
_REDIS = re.compile(r"^\d+:[A-Z] (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d:\d\d:\d\d\.\d{3}) ")
_ISO = re.compile(  # etcd's JSON, PostgreSQL, Log4j, MariaDB, NATS
    r"(\d{4}[-/]\d\d[-/]\d\d)[T ]([\d ]\d:\d\d:\d\d(?:[.,]\d{1,6})?)\d*(Z| UTC|[+-]\d\d:?\d\d)?"
)
_HEAD = 60
"""Characters at the begin of a line that are searched for its time."""


@dataclass(frozen=True)
class Line:
    """A line of a server's log; `time_ns` of the run is by the server's clock."""

    time_ns: int
    server: str
    text: str


@dataclass(frozen=True)
class Excerpt:
    """Lines of the logs from `start` until `end` (ns of the run); `more` lines are left out."""

    start: float
    end: float
    lines: list[Line] = field(default_factory=list)
    more: int = 0


def unix_s(line: str) -> float | None:
    """Return when a line was written, or None if it has no time. A time without a zone is taken as
    UTC, as on the nodes that fencepost starts."""
    if found := _REDIS.match(line):
        day, month, year, clock = found.groups()
        written = f"{year}-{_MONTHS.get(month, month)}-{day}T{clock}Z"
    elif found := _ISO.search(line, 0, _HEAD):
        date, clock, zone = found.groups()
        date, clock = date.replace("/", "-"), clock.replace(" ", "0")
        written = f"{date}T{clock}{'Z' if zone in (None, ' UTC') else zone}"
    else:
        return None
    try:
        return datetime.fromisoformat(written).timestamp()
    except ValueError:
        return None


def moments(pieces: Iterable[Mapping[str, Any]]) -> Iterator[tuple[float, float]]:
    """Return the moments (ns) of these pieces of evidence, each from the begin of its cause."""
    for piece in pieces:
        start, end = piece.get("time_ns"), piece.get("until_ns")
        if isinstance(start, int | float):
            led = [
                link.get("time_ns") for link in piece.get("cause") or () if isinstance(link, dict)
            ]
            since = [one for one in led if isinstance(one, int | float) and one >= start - _LED_NS]
            yield min([start, *since]), end if isinstance(end, int | float) else start


def windows(moments: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the disjoint windows (ns) around the first of these moments."""
    found: list[tuple[float, float]] = []
    for start, end in moments:
        near = start - _NEAR_NS, min(end, start + _FAR_NS) + _NEAR_NS
        if all(near[1] < other[0] or near[0] > other[1] for other in found):
            found.append(near)
        if len(found) == MOMENTS:
            break
    return sorted(found)


def excerpts(
    folder: Path, test: Mapping[str, Any], moments: Iterable[tuple[float, float]]
) -> list[Excerpt]:
    """Return log excerpts of a run's folder around these moments, the most important first.

    Empty if the run does not record when it began, or has no logs.
    """
    began_s = test.get("began_unix_s")
    spans = windows(moments)
    logs = sorted(folder.glob("nodes/*/server.log"))
    if not isinstance(began_s, int | float) or not spans or not logs:
        return []
    found = [_around(log, float(began_s), spans) for log in logs]
    return [_together(span, [its[place] for its in found]) for place, span in enumerate(spans)]


_Some = tuple[list[Line], int]


def _around(log: Path, began_s: float, spans: Sequence[tuple[float, float]]) -> list[_Some]:
    """Return the lines of one log in each window, those nearest its middle, and how many more there
    are."""
    excerpts: list[deque[Line]] = [deque() for _ in spans]
    counts = [0] * len(spans)
    time_ns: int | None = None
    try:
        with plainfile.opened(log) as lines:
            for line in lines:
                text = line.decode(errors="replace")
                when = unix_s(text)
                # A line without a time, such as one of a stack trace, belongs to the one before it.
                time_ns = time_ns if when is None else round((when - began_s) * 1e9)
                if time_ns is None:
                    continue
                for place, (start, end) in enumerate(spans):
                    if start <= time_ns <= end:
                        counts[place] += 1
                        _keep(
                            excerpts[place], Line(time_ns, log.parent.name, _cut(text)), start, end
                        )
    except OSError:
        return [([], 0) for _ in spans]
    return [(list(its), count - len(its)) for its, count in zip(excerpts, counts, strict=True)]


def _keep(its: deque[Line], line: Line, start: float, end: float) -> None:
    """Append a line; when there are too many, drop the first or the last, whichever is farther from
    the middle."""
    its.append(line)
    if len(its) > LINES:
        middle = (start + end) / 2
        first = middle - its[0].time_ns > its[-1].time_ns - middle
        its.popleft() if first else its.pop()


def _cut(text: str) -> str:
    text = text.rstrip()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _together(span: tuple[float, float], some: Sequence[_Some]) -> Excerpt:
    lines = (line for its, _ in some for line in its)
    return Excerpt(
        *span, sorted(lines, key=lambda line: line.time_ns), sum(more for _, more in some)
    )
