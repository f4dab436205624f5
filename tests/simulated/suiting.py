"""The faults of a run, and the settings that its defect needs (`needs` in defects.py)."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from tests.simulated import strikes
from tests.simulated.plan import Plan, Strike
from tests.simulated.world import MS

_SETTINGS: dict[str, dict[str, Any]] = {
    "crowd": {"think": 500 * MS, "rest": 50 * MS, "wait": 6000 * MS, "lingers": 0.3},
    "one_wakeup": {"wakeups": True},
    "renewed": {"extends": 0.7, "visible": True, "watches": False},
    # Its settings make it likely that another client is granted the lock as soon as it is free.
    "contended": {"rest": 100 * MS, "locks": 1, "shared": 0.0, "visible": True},
    # The clients never stop asking, so that a dead lock is dead beyond doubt.
    "asking": {"rest": 50 * MS, "locks": 1, "crash": 0},
    "impatient": {"timeout": 5 * MS},
    "reentrant": {"reentrant": True, "watchdog": False, "uneven": False, "nameless": False},
    "watchdog": {"watchdog": True, "reentrant": False, "uneven": False, "nameless": False},
    "many": {"clients": 5, "idle": 0, "errors": (0,) * 5, "error_bound": 0},
    "short": {"ttl": 400 * MS, "wait": 2500 * MS},
    "patient": {"ttl": 400 * MS, "timeout": 1000 * MS},
    "rates": {"drift": 0.2, "ttl": 1000 * MS, "think": 900 * MS, "extends": 0.0},
    "sparse": {"clients": 2, "idle": 0, "errors": (0, 0), "error_bound": 0, "rest": 800 * MS},
    "readers": {"think": 50 * MS, "rest": 1500 * MS, "shared": 0.6, "wait": 3500 * MS},
    "split": {"ttl": 2500 * MS, "wait": 3500 * MS},
    "lost_releases": {"lost_releases": 0.1, "loss": 0.0},
    # A client is often the only one that asks, for less than a lease.
    "alone": {
        "clients": 2,
        "idle": 0,
        "errors": (0, 0),
        "error_bound": 0,
        "locks": 1,
        "loss": 0.0,
        "ttl": 1500 * MS,
        "wait": 150 * MS,
        "think": 100 * MS,
        "rest": 1000 * MS,
        "careful": False,
        "shared": 0.0,
    },
    "single": {"clients": 1, "errors": (0,)},
}
_STRIKES = {
    "late": strikes.late,
    "held": strikes.held,
    "slow": strikes.slow,
    "between": strikes.between,
    "restarts": strikes.restarts,
    "clocks": strikes.clocks,
    "stalls": strikes.stalls,
    "outage": strikes.outage,
}


def suited(random: Random, plan: Plan, needs: tuple[str, ...]) -> Plan:
    """Return the plan with its faults, and the settings that its defect needs."""
    for need in needs:
        plan = replace(plan, **_SETTINGS.get(need, {}))
    found = _strikes(random, plan, needs)
    changed: dict[str, Any] = {}
    if plan.defect == "long_lease":
        changed["factor"] = 1000.0
    if plan.defect == "short_lease":
        changed["factor"] = random.choice((0.001, 0.5, 0.8))
    if "busy" in needs:
        changed |= {"rest": 100 * MS, "think": int(plan.ttl * 0.6), "locks": 1}
    refusals = "true_refusals" in needs or plan.promises["true_refusals"]
    changed["promises"] = plan.promises | {
        "true_refusals": refusals,
        "reentrant": plan.reentrant,
    }
    length = plan.length
    if "asking" in needs or "single" in needs:
        length = 4000 * MS + 3 * plan.ttl + 2 * plan.bound
    last = max((s.at + s.duration for s in found), default=0)
    if random.random() < 0.7 and not plan.loss:
        # Long enough to see the lock come back after the last fault.
        length = max(length, last + plan.ttl + plan.bound + 500 * MS)
    if plan.idle and random.random() < 0.5:
        found += strikes.bystander(plan, length, found)
    found.sort(key=lambda s: s.at)
    if plan.grain:
        # A client cannot see a deadline that lies between two steps of its clock.
        changed["ttl"] = plan.ttl - plan.ttl % (2 * plan.grain)
    return replace(plan, strikes=tuple(found), length=length, **changed)


def _strikes(random: Random, plan: Plan, needs: tuple[str, ...]) -> list[Strike]:
    if "deaths" in needs:
        return strikes.deaths(random, plan)
    found = [] if "calm" in needs else strikes.any_kind(random, plan, few="crowd" in needs)
    for need in needs:
        if need in _STRIKES:
            found = found if need == "late" else []
            found += _STRIKES[need](random, plan)
    return found
