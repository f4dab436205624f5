"""A schedule of faults, drawn from a seed: the same seed and spec give the same faults.

It is drawn as a whole before the run, so that it can be stored, shown and compared. Each
family has a stream of its own for the times, and each fault one for its targets: taking a
family away leaves the others' faults where they were, but for those that made way for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from nemesis.aim import PRIMARY, Layout
from nemesis.asked import Asked
from nemesis.families import FAMILIES, check, refuse

QUIET_START_S = 1.0
_TRIES = 20


@dataclass(frozen=True)
class Scheduled:
    """One fault to come: `at_s` after the start, for `duration_s`."""

    at_s: float
    duration_s: float
    family: str
    targets: list[str]
    arguments: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "at_s": self.at_s,
            "duration_s": self.duration_s,
            "family": self.family,
            "targets": self.targets,
            "arguments": self.arguments,
        }


def read(path: Path, seed: int, layout: Layout) -> list[Scheduled]:
    """A schedule from a file: a JSON list of faults, or a run's test.json, which has one.

    Raises:
        ValueError: naming the file, the fault and what is wrong with it.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} can not be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from error
    try:
        return stored(rows.get("schedule") if isinstance(rows, dict) else rows, layout, seed)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def stored(rows: object, layout: Layout, seed: int = 0) -> list[Scheduled]:
    """A schedule as `to_json` gave it, of faults that this layout can bear.

    Somebody who writes one by hand may give a fault as `--nemesis` has it (`fault:
    "partition:halves"`), in the place of family, targets and arguments: it is drawn from the seed.

    Raises:
        ValueError: naming the row and what is wrong with it.
    """
    if not isinstance(rows, list):
        raise ValueError("a schedule is a list of faults")
    found = []
    for number, row in enumerate(rows, 1):
        try:
            found += _row(row, Random(f"{seed}/row/{number}"), layout)
        except (TypeError, ValueError) as error:
            raise ValueError(f"fault {number}: {error}") from error
    return sorted(found, key=lambda fault: fault.at_s)


def _row(row: Any, random: Random, layout: Layout) -> list[Scheduled]:
    if not isinstance(row, dict):
        raise ValueError("it is no object with at_s, duration_s and fault")
    if "fault" in row:
        strange = set(row) - {"at_s", "duration_s", "fault"}
        if strange:
            raise ValueError(f"{min(strange)} does not go with fault: a fault says it all")
        at_s, duration_s = float(row.get("at_s", "none")), float(row.get("duration_s", "none"))
        (asked,) = check([str(row["fault"])], layout)
        found = _drawn(asked, random, at_s, duration_s, layout)
    else:
        fault = Scheduled(**row)
        if not isinstance(fault.targets, list) or not isinstance(fault.arguments, dict):
            raise ValueError("targets are a list of nodes, and arguments an object")
        float(fault.at_s), float(fault.duration_s)
        found = [fault]
    for one in found:
        if one.at_s < 0 or one.duration_s < 0:
            raise ValueError("times are from 0 s on")
        if why := refuse(one.family, one.targets, one.arguments, layout):
            raise ValueError(why)
    return found


def draw(
    entries: Sequence[str], seed: int, time_s: float, interval_s: float, layout: Layout
) -> list[Scheduled]:
    """Faults of these entries until `time_s`, each family's some `interval_s` apart.

    A fault lasts half to twice the TTL, so that leases both survive and do not. A node that
    bears a pause, a crash or a jump bears no second one of these at the same time.
    """
    streams: dict[str, list[Asked]] = {}
    for asked in check(entries, layout):
        # One with an interval of its own is a stream of its own.
        streams.setdefault(asked.text if asked.interval_s else asked.family, []).append(asked)
    # In one order, so that naming the families in another changes nothing.
    order = list(FAMILIES)
    found: list[Scheduled] = []
    for name in sorted(streams, key=lambda name: (order.index(streams[name][0].family), name)):
        among = sorted(streams[name], key=lambda asked: asked.text)
        apart_s = among[0].interval_s or interval_s
        times = Random(f"{seed}/{name}")
        at_s = QUIET_START_S + times.uniform(0, apart_s / 2)
        number = 0
        while at_s < time_s:
            length_s = times.uniform(0.5, 2) * layout.ttl_s
            targets = Random(f"{seed}/{name}/{number}")
            drawn = _one(among, targets, at_s, min(length_s, time_s), layout, found)
            found += drawn
            # A rolling one has several, one after another.
            last_s = max((fault.at_s for fault in drawn), default=at_s)
            at_s = last_s + length_s + apart_s * times.uniform(0.3, 1.0)
            number += 1
    return sorted((fault for fault in found if fault.at_s < time_s), key=lambda fault: fault.at_s)


def _one(
    among: list[Asked],
    random: Random,
    at_s: float,
    length_s: float,
    layout: Layout,
    others: list[Scheduled],
) -> list[Scheduled]:
    """A fault (a rolling one is several) that collides with no other; none where none was found."""
    for _ in range(_TRIES):
        asked = among[0]
        if len(among) > 1:
            (asked,) = random.choices(among, [one.weight for one in among])
        drawn = _drawn(asked, random, at_s, length_s, layout)
        if not any(_collide(one, other, layout) for one in drawn for other in others):
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


# A fault takes a while to be proved and healed, and a client a while to come to its point.
_MARGIN_S = 4.0


def _collide(one: Scheduled, other: Scheduled, layout: Layout) -> bool:
    if not (FAMILIES[one.family].own and FAMILIES[other.family].own):
        return False
    if not _nodes(one, layout) & _nodes(other, layout):
        return False
    first, second = sorted((one, other), key=lambda fault: fault.at_s)
    return second.at_s < first.at_s + first.duration_s + _MARGIN_S


def _nodes(fault: Scheduled, layout: Layout) -> set[str]:
    """The nodes that a fault may strike: whoever leads may be any of the servers."""
    return {*fault.targets, *(layout.servers if PRIMARY in fault.targets else ())}
