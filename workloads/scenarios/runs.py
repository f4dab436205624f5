"""Timed runs that several suites share: controls, a long queue, random faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fencepost.workloads.scenarios.claim import EXPLORATION
from fencepost.workloads.scenarios.expectations import KEPT
from fencepost.workloads.scenarios.sources import OVERVIEW
from fencepost.workloads.scenarios.suite import TimedRun

CONTROL_S = 3.0
EXPLORE_S = 30.0
SHORT = {"hold": "0..20ms", "think": "0..20ms", "contention": "all"}
"""Many holds in a short time, by all clients at once."""


def controls(ttl_ms: int, token: Mapping[str, Any]) -> tuple[TimedRun, ...]:
    """Return the controls without faults: unguarded, and fenced with the tokens that these options
    give."""
    what = "No faults: five clients take the lock in turn and every promise holds."
    settings = {"time_s": CONTROL_S, "ttl_ms": ttl_ms} | SHORT
    plain = TimedRun("control", what, {}, calm=True, settings=settings)
    return plain, replace(plain, options=token, guard="fenced")


def explore(ttl_ms: int, families: tuple[str, ...] = ("partition", "pause", "kill")) -> TimedRun:
    """Return a run without a published outcome: random faults on servers and clients."""
    settings = {
        "time_s": EXPLORE_S,
        "ttl_ms": ttl_ms,
        "nemesis": families,
        "interval_s": 4.0,
        **SHORT,
        "hold": "0..100ms",
    }
    what = f"Faults at random, drawn from the seed: {', '.join(families)}."
    return TimedRun("random", what, {}, claims=(EXPLORATION,), settings=settings)


def queue(algorithm: str) -> TimedRun:
    """Return a run with enough clients that an overtaking could be seen. `algorithm`: the lock's,
    by its id."""
    return TimedRun(
        "queue",
        "Ten clients work under the lock for up to a quarter of a second each, so that all wait: "
        "grants come in the order of asking, and each release wakes one client.",
        KEPT,
        claims=("C21", algorithm),
        source=OVERVIEW,
        settings={
            "time_s": 8.0,
            "ttl_ms": 2000,
            "concurrency": 10,
            **SHORT,
            "hold": "0..250ms",
            "work": {"extend": 0},
        },
    )


def clocks(ttl_ms: int) -> TimedRun:
    """Return a run of faults that the articles leave out: jumps of the servers' monotonic clocks,
    which time the leases."""
    nemesis = ("clock/monotonic",)
    settings = {"time_s": 20.0, "ttl_ms": ttl_ms, "nemesis": nemesis, "interval_s": 3.0} | SHORT
    what = (
        "The servers' clocks jump, including the monotonic ones, by which they time leases and "
        "sessions; the articles assume these to be right."
    )
    return TimedRun("clocks", what, {}, claims=("C18",), settings=settings)
