"""The suites by name: scenarios and timed runs, each against its published outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.workloads.scenarios import etcd, libraries, postgres, redis, redlock, zookeeper
from fencepost.workloads.scenarios.scenario import Scenario, Suite, Timed

CONTROL_S = 3.0
EXPLORE_S = 30.0
_KEPT = dict.fromkeys(
    (
        "lease_exclusion",
        "linearizable",
        "mutual_exclusion",
        "ownership",
        "liveness",
        "store",
        "resource",
    ),
    True,
)


def _controls(ttl_ms: int, plain: Mapping[str, Any], token: Mapping[str, Any]) -> tuple[Timed, ...]:
    """Without faults, unguarded and with tokens and a fence."""
    what = "No faults: five clients take the lock in turn and every promise holds."
    settings = {"time_s": CONTROL_S, "ttl_ms": ttl_ms}
    fencing = {"fencing": True}
    return (
        Timed("control", what, _KEPT, options=plain, settings=settings),
        Timed("control", what, _KEPT | fencing, options=token, guard="fenced", settings=settings),
    )


def _explore(ttl_ms: int, families: tuple[str, ...]) -> Timed:
    """What nobody has published: faults at random, on servers and on clients."""
    settings = {
        "time_s": EXPLORE_S,
        "ttl_ms": ttl_ms,
        "nemesis": families,
        "interval_s": 4.0,
        "work": {"think_ms": 100},
    }
    what = f"Faults at random, drawn from the seed: {', '.join(families)}."
    return Timed("random", what, {}, claim="exploration", settings=settings)


def _queue(lock: str) -> Timed:
    """So many clients that an overtaking could be seen."""
    return Timed(
        "queue",
        "Ten clients work under the lock for up to a quarter of a second each, so that all wait: "
        "grants come in the order of asking, and each release wakes one client.",
        _KEPT,
        claim="C21",
        source="An overview of distributed locks with Redis, etcd and Chubby",
        lock=lock,
        settings={
            "time_s": 8.0,
            "ttl_ms": 2000,
            "concurrency": 10,
            "work": {"think_ms": 250, "extend": 0},
        },
    )


def _herd() -> Timed:
    return Timed(
        "herd",
        "Broken on purpose: every waiter watches the holder's znode, and each release wakes all.",
        _KEPT | {"liveness": False},
        claim="C21",
        source="ZooKeeper Recipes and Solutions",
        lock="broken-herd",
        settings={"time_s": CONTROL_S, "ttl_ms": 2000},
    )


def _clocks(ttl_ms: int) -> Timed:
    """What the articles leave out: the leader's own monotonic clock, by which leases end."""
    settings = {"time_s": 20.0, "ttl_ms": ttl_ms, "nemesis": ("clock",), "interval_s": 3.0}
    what = (
        "The servers' clocks jump, the monotonic ones included, by which they count leases and "
        "sessions; the articles take these to be right."
    )
    return Timed("clocks", what, {}, claim="C18", settings=settings)


_ALL = ("partition", "pause", "clock", "kill")
_NO_CLOCK = ("partition", "pause", "kill")


def _suite(
    lock: str,
    ttl_ms: int,
    scenarios: tuple[Scenario, ...],
    token: Mapping[str, Any],
    more: tuple[Timed, ...] = (),
    families: tuple[str, ...] = _NO_CLOCK,
) -> Suite:
    controls = _controls(ttl_ms, {}, token)
    return Suite(lock, (*controls, *more, *scenarios, _explore(ttl_ms, families)))


SUITES: dict[str, Suite] = {
    "redlock": _suite("redlock", 1000, redlock.SCENARIOS, {"token": "one"}, families=_ALL),
    "redis": _suite("redis", 1000, redis.SCENARIOS, {"token": "incr"}, families=_ALL),
    "zookeeper": _suite(
        "zookeeper", 2000, zookeeper.SCENARIOS, {}, (_queue("zookeeper"), _herd(), _clocks(2000))
    ),
    "etcd": _suite("etcd", 2000, etcd.SCENARIOS, {}, (_queue("etcd"), _clocks(2000))),
    "postgres": _suite("postgres", 2000, postgres.SCENARIOS, {"token": "sequence"}),
    "libraries": Suite("", libraries.SCENARIOS),
}
"""Every suite by name."""
