"""A schedule of faults, drawn from a seed: the same seed and spec give the same faults.

It is drawn as a whole before the run, so that it can be stored, shown and compared. Each
family has a stream of its own for the times, and each fault one for its targets: taking a
family away leaves the others' faults where they were, but for those that made way for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from nemesis.families import FAMILIES, Layout

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


def stored(rows: object, layout: Layout) -> list[Scheduled]:
    """A schedule as `to_json` gave it, of faults that this layout can bear.

    Raises:
        ValueError: naming the row and what is wrong with it.
    """
    if not isinstance(rows, list):
        raise ValueError("a schedule is a list of faults")
    found = []
    for number, row in enumerate(rows, 1):
        try:
            fault = Scheduled(**row)
            at_s, duration_s = float(fault.at_s), float(fault.duration_s)
        except (TypeError, ValueError) as error:
            raise ValueError(f"fault {number}: {error}") from error
        if fault.family not in FAMILIES:
            raise ValueError(f"fault {number}: there is no family {fault.family!r}")
        if at_s < 0 or duration_s < 0:
            raise ValueError(f"fault {number}: times are from 0 s on")
        strange = set(fault.targets) - {*layout.servers, *layout.clients, *layout.stores}
        if strange:
            raise ValueError(f"fault {number}: the test has no node {min(strange)!r}")
        found.append(fault)
    return found


def draw(
    families: Sequence[str], seed: int, time_s: float, interval_s: float, layout: Layout
) -> list[Scheduled]:
    """Faults of these families until `time_s`, each family's some `interval_s` apart.

    A fault lasts half to twice the TTL, so that leases both survive and do not. A node that
    bears a pause, a crash or a jump bears no second one of these at the same time.
    """
    found: list[Scheduled] = []
    # In one order, so that naming the families in another changes nothing.
    for family in (name for name in FAMILIES if name in families):
        times = Random(f"{seed}/{family}")
        at_s = QUIET_START_S + times.uniform(0, interval_s / 2)
        number = 0
        while at_s < time_s:
            length_s = times.uniform(0.5, 2) * layout.ttl_s
            targets = Random(f"{seed}/{family}/{number}")
            fault = _one(family, targets, at_s, min(length_s, time_s), layout, found)
            found += [fault] if fault else []
            at_s += length_s + interval_s * times.uniform(0.3, 1.0)
            number += 1
    return sorted(found, key=lambda fault: fault.at_s)


def _one(
    family: str,
    random: Random,
    at_s: float,
    length_s: float,
    layout: Layout,
    others: list[Scheduled],
) -> Scheduled | None:
    """A fault that collides with none of the others; None where none was found."""
    draw_one = FAMILIES[family].draw
    assert draw_one is not None
    for _ in range(_TRIES):
        targets, arguments = draw_one(random, layout)
        duration_s = arguments.pop("restart_s", length_s)
        fault = Scheduled(round(at_s, 3), round(duration_s, 3), family, targets, arguments)
        if not any(_collide(fault, other) for other in others):
            return fault
    return None


# A fault takes a while to be proved and healed, and a client a while to come to its point.
_MARGIN_S = 4.0


def _collide(one: Scheduled, other: Scheduled) -> bool:
    if not (FAMILIES[one.family].own and FAMILIES[other.family].own):
        return False
    if not set(one.targets) & set(other.targets):
        return False
    first, second = sorted((one, other), key=lambda fault: fault.at_s)
    return second.at_s < first.at_s + first.duration_s + _MARGIN_S
