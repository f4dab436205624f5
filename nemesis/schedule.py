"""A schedule of faults, drawn from a seed: the same seed and spec give the same faults.

It is drawn completely before the run, so that it can be stored, shown and compared. Each family has
its own random stream for the times, and each fault one for its targets: removing a family leaves
the others' faults unchanged, except those that made room for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from fencepost import plainfile
from fencepost.nemesis.failpoints import patience_s
from fencepost.nemesis.families import FAMILIES, check, describe, validate
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.stream import Placed, Stream, place, ways
from fencepost.nemesis.targets import HOLDER, Layout
from fencepost.runfiles import TEST, description
from fencepost.strictjson import decode

# A year; a longer time is a mistake, and an infinite one (Infinity, which Python writes) never
# heals.
_LONGEST_S = 366 * 24 * 3600.0
Seconds = Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_S)]


class Scheduled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One future fault: `at_s` after the start, for `duration_s`."""

    at_s: Seconds
    duration_s: Seconds
    family: str
    targets: list[str]
    arguments: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class _Short(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A hand-written fault: `fault` is an entry as in `--nemesis`."""

    at_s: Seconds
    duration_s: Seconds
    fault: str


def read(path: Path, seed: int, layout: Layout) -> list[Scheduled]:
    """Read a schedule from a file: a JSON list of faults, or a run's test.json, which has one.

    Raises:
        ValueError: the text names the file, the fault and the problem.
    """
    try:
        rows = decode(plainfile.read(path))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    try:
        if isinstance(rows, dict):
            # Triggered faults are in the run.json next to it.
            rows = (description(path.parent) if path.name == TEST else rows).get("schedule")
        return from_rows(rows, layout, seed)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def from_rows(rows: object, layout: Layout, seed: int = 0) -> list[Scheduled]:
    """Convert the rows of `to_json` to a schedule that this layout supports.

    A hand-written row may give a fault as in `--nemesis` (`fault: "partition:halves"`) instead of
    family, targets and arguments: it is drawn from the seed.

    Raises:
        ValueError: the text names the row, the field and the problem.
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
        found = [_convert(row, Scheduled)]
    else:
        short = _convert(row, _Short)
        (asked,) = check([short.fault], layout)
        drawn = ways(asked, random, layout)
        found = [_scheduled(place(way, short.at_s, short.duration_s)) for way in drawn]
    for one in found:
        validate(one.family, one.targets, one.arguments, layout)
    return [_said(fault) for fault in found]


Row = TypeVar("Row", bound=msgspec.Struct)


def _convert(row: Any, type: type[Row]) -> Row:
    """Convert a row to this type. Raises ValueError naming the field and the problem."""
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
    """Draw faults of these entries until `time_s`, each family's some `interval_s` apart.

    A fault lasts half to twice the TTL, so that some leases outlive it and others do not. A node
    has one fault of the exclusive families at a time. Unless the run is short, its last faults are
    those of `_closing`, each with the cluster to itself.
    """
    asked_for = check(entries, layout)
    closing, end_s = _closing(asked_for, time_s, layout), time_s
    if closing:
        end_s = closing[0].at_s - _QUIET_TTLS * layout.ttl_s
    others = _drawn(asked_for, seed, end_s, interval_s, layout)
    if closing:
        others = [_prompt(one, end_s) for one in others if _over_by(one, end_s, time_s)]
    return [*others, *closing]


# The gap between the last faults and all others, in TTLs.
_QUIET_TTLS = 0.25


def _closing(asked: Sequence[Asked], time_s: float, layout: Layout) -> list[Scheduled]:
    """Return the faults of holders that end a run, once all others are healed: as many as fit into
    its second half.

    They show what follows only if no server has restarted or had its clock skewed shortly before:
    that may free a lock by accident, and the loss of a hold is then attributed to it.
    """
    ttl_s = layout.ttl_s
    found: list[Scheduled] = []
    after_ttls = 0.0
    closings = [(one.closing, name) for name, one in FAMILIES.items() if one.closing is not None]
    for closing, name in sorted(closings, key=lambda each: each[0].place):
        arguments = closing.arguments(layout)
        short = time_s < closing.least * ttl_s
        if arguments is None or short or not _asks(asked, name, layout):
            continue
        many = min(closing.most, int((time_s / 2 / ttl_s - after_ttls) // closing.takes))
        for _ in range(many):
            after_ttls += closing.takes
            at_s = round(time_s - after_ttls * ttl_s, 3)
            lasts_s = round(closing.lasts * ttl_s, 3)
            found.insert(0, Scheduled(at_s, lasts_s, name, [HOLDER], arguments))
    return [_said(fault) for fault in found]


def _asks(asked: Sequence[Asked], family: str, layout: Layout) -> bool:
    """Return whether any client may be affected by faults of a family."""
    return bool(layout.clients) and any(
        one.family == family and one.target in ("", "client", HOLDER) and not one.variant
        for one in asked
    )


def _over_by(fault: Scheduled, end_s: float, time_s: float) -> bool:
    """Return whether the fault ends by then. A fault that outlasts the run is included all the
    same."""
    return fault.at_s + fault.duration_s <= end_s or fault.duration_s >= time_s


def _prompt(fault: Scheduled, end_s: float) -> Scheduled:
    """Return the fault, without its failpoint if waiting for that would delay its end too much."""
    point = fault.arguments.get("point")
    if point is None or fault.at_s + patience_s(point) + fault.duration_s <= end_s:
        return fault
    return _said(replace(fault, arguments=fault.arguments | {"point": None, "words": ""}))


def _drawn(
    asked_for: Sequence[Asked], seed: int, time_s: float, interval_s: float, layout: Layout
) -> list[Scheduled]:
    streams: dict[str, list[Asked]] = {}
    for asked in asked_for:
        # One with its own interval has its own stream.
        streams.setdefault(asked.text if asked.interval_s else asked.family, []).append(asked)
    # By time, so that each family finds its room; in a fixed order, so that the order of names does
    # not matter.
    order = list(FAMILIES)
    names = sorted(streams, key=lambda name: (order.index(streams[name][0].family), name))
    queue = [
        Stream(rank, name, sorted(streams[name], key=lambda asked: asked.text), seed, interval_s)
        for rank, name in enumerate(names)
    ]
    found: list[Scheduled] = []
    near: list[Placed] = []  # those that a later one may still collide with
    while queue:
        stream = min(queue, key=lambda one: (one.at_s, one.rank))
        if stream.at_s >= time_s:
            queue.remove(stream)
            continue
        now_s = round(stream.at_s, 3)
        near = [one for one in near if one.until_s > now_s]
        placed = stream.next(time_s, layout, near)
        near += placed
        found += [_scheduled(one) for one in placed]
    return sorted((fault for fault in found if fault.at_s < time_s), key=lambda fault: fault.at_s)


def _scheduled(placed: Placed) -> Scheduled:
    drawn, family = placed.way.drawn, placed.way.family.name
    fault = Scheduled(placed.at_s, placed.duration_s, family, drawn.targets, drawn.arguments)
    return _said(fault)


def _said(fault: Scheduled) -> Scheduled:
    """Return the fault with its words, for readers of the schedule and the history."""
    words = describe(fault.family, fault.targets, fault.arguments)
    return replace(fault, arguments=fault.arguments | {"words": words})
