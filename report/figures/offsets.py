"""Each node's clock offsets over time, from the receipts of clock faults.

A fault reads the clock when it sets it, and again when it restores it. Between the two readings the
clock is drawn as the fault drives it: off by the amount that was read, or drifting at the rate that
was set. A clock that no fault has set is taken as right, and is not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any

from fencepost.checker.history.history import History, Op
from fencepost.report.figures.table import short, table, us

MOST = 3000
"""Largest number of clock readings drawn; later ones are dropped."""
CLOCKS = 8
"""Largest number of clocks drawn."""

_LARGE = 1e12

Point = tuple[float, float | None]
"""A time in ns and the offset at it in s; None where the line breaks off because the process did
not show the fault's setting."""


@dataclass
class Course:
    """One clock of one node. `seen`: its readings (time in ns, least and greatest offset in s);
    `points`: its course, as lines between points."""

    node: str
    clock: str
    seen: list[tuple[int, float, float]] = field(default_factory=list)
    points: list[Point] = field(default_factory=lambda: [(0.0, 0.0)])
    rate: float = 0.0

    @property
    def known(self) -> bool:
        """Return whether its course is known beyond its begin."""
        return bool(self.seen) or any(offset_s for _, offset_s in self.points)

    def at(self, time_ns: float) -> float | None:
        """Return the offset at a time after the last point."""
        then, offset_s = self.points[-1]
        return None if offset_s is None else offset_s + self.rate * (time_ns - then) / 1e9

    def go_on(self, time_ns: float) -> None:
        self.points.append((time_ns, self.at(time_ns)))

    def strobe(self, start_ns: float, end_ns: float, offset_s: float) -> None:
        """The clock jumps back and forth faster than can be drawn: draw a box."""
        self.go_on(start_ns)
        base = self.points[-1][1] or 0.0
        corners = [(start_ns, base + offset_s), (end_ns, base + offset_s), (end_ns, base)]
        self.points += [*corners, (start_ns, base), (end_ns, base)]


def courses(history: History) -> tuple[list[Course], list[str]]:
    """Return the clocks that faults have set, by the first time, and the nodes of readings left
    out."""
    found: dict[tuple[str, str], Course] = {}
    strobes: dict[tuple[str, str], tuple[int, float]] = {}
    invoked: dict[tuple[Any, Any], int] = {}
    looks = 0
    left_out: list[str] = []
    for op in history.nemesis():
        if op.type == "invoke":
            invoked[op.value.get("fault"), op.value.get("phase")] = op.time
            continue
        begun = invoked.pop((op.value.get("fault"), op.value.get("phase")), op.time)
        for node, clock, bounds in _looks(op):
            if looks == MOST or ((node, clock) not in found and len(found) == CLOCKS):
                left_out.append(node)
                continue
            looks += 1
            course = found.setdefault((node, clock), Course(node, clock))
            if (node, clock) in strobes:
                since, offset_s = strobes.pop((node, clock))
                course.strobe(since, begun, offset_s)
            arguments = op.value.get("arguments") or {}
            sets = op.value.get("phase") != "end"
            strobe = sets and arguments.get("kind") == "strobe"
            if strobe:
                strobes[node, clock] = op.time, _number(arguments.get("offset_s"), 0.0)
            rate = _number(arguments.get("rate"), 1.0) - 1 if sets else 0.0
            _set(course, op, begun, bounds, rate, strobe)
    for key, (since, offset_s) in strobes.items():
        found[key].strobe(since, history.end_ns, offset_s)
    for course in found.values():
        course.go_on(history.end_ns)
    return list(found.values()), left_out


def _looks(op: Op) -> Iterator[tuple[str, str, tuple[float, float] | None]]:
    """Return each node and clock in a receipt, with the bounds of its offset in s; None if they are
    unknown."""
    seen = (op.value.get("receipt") or {}).get("offset_bounds_s")
    if not isinstance(seen, Mapping):
        return
    for node, clocks in seen.items():
        for clock, bounds in clocks.items() if isinstance(clocks, Mapping) else ():
            pair = bounds if isinstance(bounds, list) and len(bounds) == 2 else [None, None]
            low, high = (_number(one, nan) for one in pair)
            yield str(node), str(clock), None if isnan(low + high) else (low, high)


def _number(value: Any, otherwise: float) -> float:
    """Return a finite number from an untrusted file, or None."""
    known = isinstance(value, int | float) and abs(value) < _LARGE
    return float(value) if known else otherwise


def _set(
    course: Course,
    op: Op,
    begun: int,
    bounds: tuple[float, float] | None,
    rate: float,
    strobes: bool,
) -> None:
    """Draw a fault's effect from `begun`, when it was ordered, to its receipt.

    A clock that `strobes` has no steady reading, and keeps its course.
    """
    course.go_on(begun)
    if bounds is None and not strobes:
        course.points.append((op.time, None))
    elif bounds is not None:
        low, high = bounds
        course.seen.append((op.time, low, high))
        course.points.append((op.time, (low + high) / 2))
    course.rate = rate


def offsets(history: History) -> dict[str, Any]:
    """Build the tables `clocks` that were set, each with its course (`points`, µs and s), and
    `looks` at them, by the clock's position. `hidden`: clocks that their process never showed;
    `left_out`: the number of readings left out; `nodes`: all nodes whose clocks were set."""
    found, left_out = courses(history)
    shown = [course for course in found if course.known]
    return {
        "clocks": table(("node", "clock", "points"), map(_row, shown)),
        "looks": table(
            ("clock", "time", "low", "high"),
            (
                (place, us(time), low, high)
                for place, course in enumerate(shown)
                for time, low, high in course.seen
            ),
        ),
        "hidden": [f"{short(c.node)}, {short(c.clock)}" for c in found if not c.known],
        "left_out": len(left_out),
        "nodes": sorted({short(c.node) for c in found} | set(map(short, left_out))),
    }


def _row(course: Course) -> tuple[Any, ...]:
    points = [[us(time), None if off is None else round(off, 6)] for time, off in course.points]
    return short(course.node), short(course.clock), points
