"""Axes of a sweep over clock faults: how fast they run, and how far they jump ahead."""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.nemesis.axis import LONG, FaultAxis
from fencepost.nemesis.targets import Drawn, Layout, pick
from fencepost.setting import NUMBER, TIME_S


def _drift(rate: float, at: Layout, random: Random) -> Drawn:
    if at.kind.grain_s >= 1:
        raise ValueError(
            f"{at.kind.name} shows its clocks to the second, by which no drift can be proved"
        )
    # Long enough for some leases, and to distinguish the clock from a correct one.
    return _of_most(at, random, 3 * at.ttl_s + 1, {"kind": "drift", "rate": rate})


def _jump(offset_s: float, at: Layout, random: Random) -> Drawn:
    return _of_most(at, random, at.ttl_s + 1, {"kind": "jump", "offset_s": offset_s})


def _of_most(at: Layout, random: Random, lasts_s: float, arguments: dict[str, Any]) -> Drawn:
    """A fault of the clocks by which leases go: of a majority of the servers, or of all of them
    where the leader's alone counts."""
    clocks = ["wall"] if at.kind.lease_clock == "wall" else ["wall", "monotonic"]
    targets = pick(random, at, "all" if at.kind.leader_leases else "majority")
    return Drawn(targets, {"clocks": clocks, **arguments}, duration_s=lasts_s)


AXES = (
    FaultAxis(
        "drift",
        "drift",
        "how fast the clocks of a majority of the servers run: 1.1 is 10 % too fast",
        NUMBER,
        1.01,
        10,
        _drift,
        LONG,
        even=True,
    ),
    FaultAxis(
        "jump",
        "jump",
        "how far the clocks of a majority of the servers jump ahead",
        TIME_S,
        0.05,
        3600,
        _jump,
        LONG,
    ),
)
