"""A schedule of faults, drawn from a seed: the same seed and spec give the same faults.

It is drawn as a whole before the run, so that it can be stored, shown and compared. Each
family has a stream of its own for the times, and each fault one for its targets: taking a
family away leaves the others' faults where they were, but for those that made way for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from fencepost.nemesis.asked import Asked, today
from fencepost.nemesis.families import FAMILIES, check, describe, validate
from fencepost.nemesis.family import Family, Strike
from fencepost.nemesis.targets import Drawn, Layout
from fencepost.strictjson import decode

QUIET_START_S = 1.0
_TRIES = 8
_LATER_S = 1.0


# A year; longer is a mistake, and what has no end (Infinity, which Python writes) never heals.
_LONGEST_S = 366 * 24 * 3600.0
Seconds = Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_S)]


class Scheduled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fault to come: `at_s` after the start, for `duration_s`."""

    at_s: Seconds
    duration_s: Seconds
    family: str
    targets: list[str]
    arguments: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class _Short(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault as somebody writes it by hand: `fault` is an entry as `--nemesis` has it."""

    at_s: Seconds
    duration_s: Seconds
    fault: str


def read(path: Path, seed: int, layout: Layout) -> list[Scheduled]:
    """A schedule from a file: a JSON list of faults, or a run's test.json, which has one.

    Raises:
        ValueError: naming the file, the fault and what is wrong with it.
    """
    try:
        rows = decode(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    try:
        if isinstance(rows, dict):
            rows = rows.get("schedule")
        return stored(rows, layout, seed)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def stored(rows: object, layout: Layout, seed: int = 0) -> list[Scheduled]:
    """A schedule as `to_json` gave it, of faults that this layout can bear.

    Somebody who writes one by hand may give a fault as `--nemesis` has it (`fault:
    "partition:halves"`), in the place of family, targets and arguments: it is drawn from the seed.

    Raises:
        ValueError: naming the row, the field and what is wrong with it.
    """
    if not isinstance(rows, list):
        raise ValueError("a schedule is a list of faults")
    found = []
    for number, row in enumerate(rows, 1):
        try:
            found += _row(row, Random(f"{seed}/row/{number}"), layout)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"fault {number}: {error}") from error
    return sorted(found, key=lambda fault: fault.at_s)


def _row(row: Any, random: Random, layout: Layout) -> list[Scheduled]:
    if isinstance(row, dict) and "family" in row and "fault" not in row:
        fault = _convert(row, Scheduled)
        found = [replace(fault, family=today(fault.family))]
    else:
        short = _convert(row, _Short)
        (asked,) = check([short.fault], layout)
        ways = _drawn(asked, random, layout)
        found = [_scheduled(way, short.at_s, short.duration_s) for way in ways]
    for one in found:
        validate(one.family, one.targets, one.arguments, layout)
    return [_said(fault) for fault in found]


Row = TypeVar("Row", bound=msgspec.Struct)


def _convert(row: Any, type: type[Row]) -> Row:
    """A row as this type. Raises ValueError naming the field and what is wrong with it."""
    try:
        return msgspec.convert(row, type)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        field = place.strip("`.")
        what = what.removeprefix("Object ").replace("Expected", "expected")
        if not field:
            what += f"; a fault is an object with {', '.join(type.__struct_fields__)}"
        raise ValueError(f"{field}: {what}" if field else what) from error


def draw(
    entries: Sequence[str], seed: int, time_s: float, interval_s: float, layout: Layout
) -> list[Scheduled]:
    """Faults of these entries until `time_s`, each family's some `interval_s` apart.

    A fault lasts half to twice the TTL, so that some leases outlive it and others do not. A node
    has one fault of the exclusive families at a time.
    """
    streams: dict[str, list[Asked]] = {}
    for asked in check(entries, layout):
        # One with an interval of its own is a stream of its own.
        streams.setdefault(asked.text if asked.interval_s else asked.family, []).append(asked)
    # By time, so that each family finds its room; in one order, so that naming the families in
    # another changes nothing.
    order = list(FAMILIES)
    names = sorted(streams, key=lambda name: (order.index(streams[name][0].family), name))
    queue = [
        _Stream(place, name, sorted(streams[name], key=lambda asked: asked.text), seed, interval_s)
        for place, name in enumerate(names)
    ]
    found: list[Scheduled] = []
    near: list[_Placed] = []  # those that a later one may still collide with
    while queue:
        stream = min(queue, key=lambda one: (one.at_s, one.place))
        if stream.at_s >= time_s:
            queue.remove(stream)
            continue
        now_s = round(stream.at_s, 3)
        near = [one for one in near if one.until_s > now_s]
        found += stream.next(time_s, layout, near)
    return sorted((fault for fault in found if fault.at_s < time_s), key=lambda fault: fault.at_s)


@dataclass(frozen=True)
class _Way:
    """A way in which a fault may strike; its time is still open."""

    family: Family
    drawn: Drawn
    strike: Strike

    def times(self, at_s: float, length_s: float) -> tuple[float, float]:
        """When it begins and how long it is on, if the fault is due then and lasts so long."""
        drawn = self.drawn
        lasts_s = length_s if drawn.duration_s is None else drawn.duration_s
        return round(at_s + drawn.after_s, 3), round(lasts_s, 3)


@dataclass(frozen=True)
class _Placed:
    """A way, with the time that it has for itself."""

    at_s: float
    until_s: float
    way: _Way

    @classmethod
    def of(cls, way: _Way, at_s: float, length_s: float) -> _Placed:
        begin_s, lasts_s = way.times(at_s, length_s)
        return cls(begin_s, begin_s + lasts_s + _MARGIN_S, way)


class _Stream:
    """Faults of one family, or of one entry with an interval of its own, one after another."""

    def __init__(
        self, place: int, name: str, among: list[Asked], seed: int, interval_s: float
    ) -> None:
        self.place = place
        self._name = f"{seed}/{name}"
        self._among = among
        self._weights = [asked.weight for asked in among]
        self._apart_s = among[0].interval_s or interval_s
        self._times = Random(self._name)
        self._number = 0
        self.at_s = QUIET_START_S + self._times.uniform(0, self._apart_s / 2)
        self._begin()

    def _begin(self) -> None:
        """The next fault: how long it is, and what draws the ways in which it may strike."""
        self._length = self._times.uniform(0.5, 2)
        self._targets = Random(f"{self._name}/{self._number}")
        # Kept, with the time before which there is no room for each: a night's faults are tried
        # again millions of times.
        self._ways: list[list[_Way]] = []
        self._taken_s: list[float] = []

    def next(self, time_s: float, layout: Layout, near: list[_Placed]) -> list[Scheduled]:
        """The fault that is due, if there is room for it beside those in `near`, to which it is
        added. Else none: it is due again soon. A rolling one is several."""
        length_s = self._length * layout.ttl_s
        placed = self._room(min(length_s, time_s), layout, near)
        if not placed:
            self.at_s += _LATER_S
            return []
        near += placed
        found = [_scheduled(one.way, self.at_s, min(length_s, time_s)) for one in placed]
        last_s = max(one.at_s for one in placed)
        self.at_s = last_s + length_s + self._apart_s * self._times.uniform(0.3, 1.0)
        self._number += 1
        self._begin()
        return found

    def _room(self, length_s: float, layout: Layout, near: list[_Placed]) -> list[_Placed]:
        """A way that collides with no other fault; none where none was found."""
        for number in range(_TRIES):
            if number == len(self._ways):
                self._ways.append(self._way(layout))
                self._taken_s.append(0.0)
            if self.at_s < self._taken_s[number]:
                continue
            placed = [_Placed.of(way, self.at_s, length_s) for way in self._ways[number]]
            until_s = _taken_until_s(placed, near, self.at_s, layout)
            if not until_s:
                return placed
            self._taken_s[number] = until_s - _ROUNDED_S
        return []

    def _way(self, layout: Layout) -> list[_Way]:
        asked = self._among[0]
        if len(self._among) > 1:
            (asked,) = self._targets.choices(self._among, self._weights)
        return _drawn(asked, self._targets, layout)


def _drawn(asked: Asked, random: Random, layout: Layout) -> list[_Way]:
    """One way to strike; of a rolling fault, those of all its parts."""
    family = FAMILIES[asked.family]
    return [
        _Way(family, one, family.strike(one.targets, one.arguments, layout))
        for one in family.draw(random, layout, asked)
    ]


def _scheduled(way: _Way, at_s: float, length_s: float) -> Scheduled:
    begin_s, lasts_s = way.times(at_s, length_s)
    drawn = way.drawn
    return _said(Scheduled(begin_s, lasts_s, way.family.name, drawn.targets, drawn.arguments))


def _said(fault: Scheduled) -> Scheduled:
    """The fault with its words, for whoever reads the schedule or the history."""
    words = describe(fault.family, fault.targets, fault.arguments)
    return replace(fault, arguments=fault.arguments | {"words": words})


# A fault takes a while to be proved and healed, and a client a while to reach its failpoint.
_MARGIN_S = 4.0


# What rounding may take off a fault's begin.
_ROUNDED_S = 0.001


def _taken_until_s(
    placed: list[_Placed], near: list[_Placed], at_s: float, layout: Layout
) -> float:
    """0 if none of what is placed for `at_s` collides; else until when that is no different.

    One that begins later ends later, too: it collides until the other one is over.
    """
    for one in placed:
        for other in near:
            if _collide(one, other, layout):
                return other.until_s - (one.at_s - at_s)
    return 0.0


def _collide(one: _Placed, other: _Placed, layout: Layout) -> bool:
    if other.at_s >= one.until_s or one.at_s >= other.until_s:
        return False
    mine, its = one.way, other.way
    if mine.family.exclusive and its.family.exclusive:
        if not mine.strike.nodes.isdisjoint(its.strike.nodes):
            return True
    return mine.family.clashes(mine.strike, its.strike, layout) or its.family.clashes(
        its.strike, mine.strike, layout
    )
