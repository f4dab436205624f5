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
from fencepost.nemesis.family import Strike
from fencepost.nemesis.targets import Layout
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
        found = _drawn(asked, random, short.at_s, short.duration_s, layout)
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
    near: list[_Placed] = []  # those of `found` that a later one may still collide with
    while queue:
        stream = min(queue, key=lambda one: (one.at_s, one.place))
        if stream.at_s >= time_s:
            queue.remove(stream)
            continue
        near = [one for one in near if one.until_s > round(stream.at_s, 3)]
        placed = stream.next(time_s, layout, near)
        near += placed
        found += [_said(one.fault) for one in placed]
    return sorted((fault for fault in found if fault.at_s < time_s), key=lambda fault: fault.at_s)


@dataclass(frozen=True)
class _Placed:
    """A fault with the time that it has for itself, and what it may strike."""

    fault: Scheduled
    until_s: float
    strike: Strike

    @classmethod
    def of(cls, fault: Scheduled, layout: Layout) -> _Placed:
        strike = FAMILIES[fault.family].strike(fault.targets, fault.arguments, layout)
        return cls(fault, fault.at_s + fault.duration_s + _MARGIN_S, strike)


class _Stream:
    """Faults of one family, or of one entry with an interval of its own, one after another."""

    def __init__(
        self, place: int, name: str, among: list[Asked], seed: int, interval_s: float
    ) -> None:
        self.place = place
        self._name = f"{seed}/{name}"
        self._among = among
        self._apart_s = among[0].interval_s or interval_s
        self._times = Random(self._name)
        self._number = 0
        self.at_s = QUIET_START_S + self._times.uniform(0, self._apart_s / 2)
        self._length = self._times.uniform(0.5, 2)

    def next(self, time_s: float, layout: Layout, near: list[_Placed]) -> list[_Placed]:
        """The fault that is due, if there is room for it, else none: it is due again soon."""
        length_s = self._length * layout.ttl_s
        targets = Random(f"{self._name}/{self._number}")
        drawn = _one(self._among, targets, self.at_s, min(length_s, time_s), layout, near)
        if not drawn:
            self.at_s += _LATER_S
            return []
        # A rolling one has several, one after another.
        last_s = max(one.fault.at_s for one in drawn)
        self.at_s = last_s + length_s + self._apart_s * self._times.uniform(0.3, 1.0)
        self._length = self._times.uniform(0.5, 2)
        self._number += 1
        return drawn


def _one(
    among: list[Asked],
    random: Random,
    at_s: float,
    length_s: float,
    layout: Layout,
    near: list[_Placed],
) -> list[_Placed]:
    """A fault (a rolling one is several) that collides with no other; none where none was found."""
    for _ in range(_TRIES):
        asked = among[0]
        if len(among) > 1:
            (asked,) = random.choices(among, [one.weight for one in among])
        faults = _drawn(asked, random, at_s, length_s, layout)
        drawn = [_Placed.of(fault, layout) for fault in faults]
        if not any(_collide(one, other, layout) for one in drawn for other in near):
            return drawn
    return []


def _drawn(
    asked: Asked, random: Random, at_s: float, length_s: float, layout: Layout
) -> list[Scheduled]:
    return [
        Scheduled(
            round(at_s + one.after_s, 3),
            round(length_s if one.duration_s is None else one.duration_s, 3),
            asked.family,
            one.targets,
            one.arguments,
        )
        for one in FAMILIES[asked.family].draw(random, layout, asked)
    ]


def _said(fault: Scheduled) -> Scheduled:
    """The fault with its words, for whoever reads the schedule or the history."""
    words = describe(fault.family, fault.targets, fault.arguments)
    return replace(fault, arguments=fault.arguments | {"words": words})


# A fault takes a while to be proved and healed, and a client a while to reach its failpoint.
_MARGIN_S = 4.0


def _collide(one: _Placed, other: _Placed, layout: Layout) -> bool:
    first, second = (one, other) if one.fault.at_s <= other.fault.at_s else (other, one)
    if second.fault.at_s >= first.until_s:
        return False
    family, other_family = FAMILIES[one.fault.family], FAMILIES[other.fault.family]
    mine, its = one.strike, other.strike
    if family.exclusive and other_family.exclusive and not mine.nodes.isdisjoint(its.nodes):
        return True
    return family.clashes(mine, its, layout) or other_family.clashes(its, mine, layout)
