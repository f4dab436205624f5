"""The axes of a sweep: what it can vary, and what each value stands for in a test.

An axis is a setting of the test, or what a fault is like. A sweep has one of each: the fault comes
again and again, always in the same way, and each time it is the worst moment or close to it, so
that a few faults show where safety ends. `work` is what the clients do meanwhile.

- For a pause that moment is right before a client's write. Holds are short, so that everybody comes
  to it soon, and nobody is late by itself.
- For what makes servers forget (a clock, a restart) a hold has to be on, and to go on: holds last
  for 60 to 80 % of the lease, one after the other. Nobody holds a lock for longer than 85 % of its
  lease (workloads/client/critical_section.py), so that what a service does after that is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.targets import Layout, pick
from fencepost.setting import NUMBER, TIME_S, WHOLE, Form

Sets = Callable[[Spec, float], Spec]
Strikes = Callable[[float, Layout, Random], "Struck"]

_SHORT = {"hold": "0..100ms", "think": "0..20ms", "contention": "all", "work": {"extend": 0}}
_LONG = {"hold": "0.6ttl..0.8ttl", "think": "0..20ms", "contention": "all", "work": {"extend": 0}}


@dataclass(frozen=True)
class Struck:
    """One fault: of which family, on which nodes, for how long."""

    family: str
    targets: list[str]
    duration_s: float
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Axis:
    """`what` a value is, for people; `form` reads and shows it. Values lie from `least` to `most`.

    `even`: steps are equal differences; else each is so many times the one before. `sets`: the
    setting that a value is; else `strikes`: the fault, and `work` is what the clients do.
    """

    name: str
    title: str
    what: str
    form: Form
    least: float
    most: float
    even: bool = False
    sets: Sets | None = None
    strikes: Strikes | None = None
    work: Mapping[str, Any] = field(default_factory=dict)


def _ttl(spec: Spec, value: float) -> Spec:
    return replace(spec, ttl_ms=round(value * 1000))


def _clients(spec: Spec, value: float) -> Spec:
    return replace(spec, concurrency=round(value))


def _pause(value: float, at: Layout, random: Random) -> Struck:
    return Struck("pause", pick(random, at, "client"), value, {"point": "before-write"})


def _restart(value: float, at: Layout, random: Random) -> Struck:
    return Struck("kill", pick(random, at, "majority"), value)


def _drift(value: float, at: Layout, random: Random) -> Struck:
    if at.kind.grain_s >= 1:
        raise ValueError(
            f"{at.kind.name} shows its clocks to the second, by which no drift can be proved"
        )
    # Long enough for some leases, and to be told from a clock that is right.
    return _clock(at, random, 3 * at.ttl_s + 1, {"kind": "drift", "rate": value})


def _jump(value: float, at: Layout, random: Random) -> Struck:
    return _clock(at, random, at.ttl_s + 1, {"kind": "jump", "offset_s": value})


def _clock(at: Layout, random: Random, duration_s: float, arguments: dict[str, Any]) -> Struck:
    """Leases on etcd and ZooKeeper go by the monotonic clock, those of etcd by its leader's alone:
    all servers' clocks are off there."""
    clocks = ["wall"] if at.kind.lease_clock == "wall" else ["wall", "monotonic"]
    targets = pick(random, at, "all" if at.kind.leader_leases else "majority")
    return Struck("clock", targets, duration_s, {"clocks": clocks, **arguments})


AXES = {
    axis.name: axis
    for axis in (
        Axis("ttl", "TTL", "the lease of a grant", TIME_S, 0.1, 600, sets=_ttl),
        Axis("clients", "clients", "how many clients ask for the lock", WHOLE, 2, 10, even=True,
             sets=_clients),
        Axis("pause", "pause", "how long a client is paused, right before it writes under its hold",
             TIME_S, 0.05, 600, strikes=_pause, work=_SHORT),
        Axis("restart-delay", "restart delay", "how long a majority of the servers is away after a "
             "crash, with what its persistence keeps", TIME_S, 0.05, 600, strikes=_restart,
             work=_LONG),
        Axis("drift", "drift", "how fast the clocks of a majority of the servers run: 1.1 is 10 % "
             "too fast", NUMBER, 1.01, 10, even=True, strikes=_drift, work=_LONG),
        Axis("jump", "jump", "how far the clocks of a majority of the servers jump ahead", TIME_S,
             0.05, 3600, strikes=_jump, work=_LONG),
    )
}  # fmt: skip
"""What can be varied, by the name that --x and --y have for it."""
