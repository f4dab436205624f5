"""Draw the plan of a run from its seed.

Sound runs are drawn without restrictions. A run with a defect is drawn where that defect can occur
(`needs`), and otherwise in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from fencepost.checker.liveness import DEFAULT_BOUND_S
from tests.simulated import strikes
from tests.simulated.defects import KINDS
from tests.simulated.plan import Plan
from tests.simulated.world import MS


def draw(random: Random, ends_with: str, defect: str = "none") -> Plan:
    """Draw a plan for a service whose holds end in this way."""
    needs = KINDS[defect].needs
    crowd = "crowd" in needs
    sessions = ends_with != "lease"
    ttl = random.randrange(400, 1100) * MS
    lossy = random.random() < 0.15 and not crowd and "deaths" not in needs
    tokens = random.choice(("own", "own", "shared", "none"))
    if "tokens" in needs and tokens == "none":
        tokens = "own"
    guards = ["none", "compare-and-set", *(["fenced"] if tokens != "none" else [])]
    guard = random.choice(guards)
    if "fenced" in needs:
        guard = "fenced"
    elif "refuses" in needs and guard == "none":
        guard = guards[-1]
    shared = random.choice((0.3, 0.5)) if random.random() < 0.25 else 0.0
    if "shared" in needs:
        shared = 0.5
    elif crowd or ("linearizable" in KINDS[defect].must and random.random() < 0.7):
        shared = 0.0
    clients = random.choice((4, 5)) if crowd else random.choice((2, 3, 3, 4))
    bound = round(DEFAULT_BOUND_S * 1000) * MS  # the product's own, whatever the run
    tells = sessions and not lossy
    servers = 3 if random.random() < 0.7 else 1
    error_bound = random.choice((0, 0, 0, 0, 1, 4)) * MS
    polite = random.random() < 0.25
    promises = {
        "minority": servers == 3 and not lossy,
        "fifo": tells,
        "one_wakeup": tells,
    }
    nameless = not sessions and random.random() < 0.1
    failed_release = "nothing" if random.random() < 0.15 else "ended"
    uneven = not sessions and random.random() < 0.1
    plan = Plan(
        ends_with=ends_with,
        defect=defect,
        clients=clients,
        servers=servers,
        locks=1 if crowd else random.choice((1, 1, 1, 2)),
        length=random.randrange(5000, 8000) * MS,
        ttl=ttl,
        bound=bound,
        wait=random.randrange(500, 3500) * MS,
        timeout=random.randrange(300, 500) * MS,
        storage_timeout=random.choice((300, 600, 1500)) * MS,
        think=random.choice((100, 400, 800)) * MS,
        rest=random.choice((300, 1000, 2500)) * MS,
        shared=shared,
        tokens=tokens,
        guard=guard,
        promises=promises,
        loss=0.03 if lossy else 0.0,
        errors=tuple(random.randint(-error_bound, error_bound) for _ in range(clients)),
        error_bound=error_bound,
        failed_release=failed_release,
        one_resource=random.random() < 0.3,
        nameless=nameless,
        # A hold that continues after a failed release would end with an unrecorded close.
        silent_close=failed_release == "ended" and random.random() < 0.15,
        careful=random.random() < 0.5,
        # A background renewal ignores a longer lease that was requested since.
        watchdog=not sessions and not nameless and not uneven and random.random() < 0.3,
        watches=random.random() < 0.8,
        polite=polite,
        twice=0.2 if not sessions and not polite and not nameless else 0.0,
        uneven=uneven,
        confirm=random.random() < 0.5,
        naive=ends_with == "close" and random.random() < 0.5,
        visible=ends_with != "connection" or random.random() < 0.5,
        wakeups=sessions and random.random() < 0.7,
        crash=random.randrange(1000, 5000) * MS if random.random() < 0.08 else 0,
        # The harness is killed, and leaves its recorded part.
        cut_off=random.randrange(1000, 8000) * MS
        if defect == "none" and random.random() < 0.1
        else 0,
    )
    return _suited(random, plan, needs)


def _suited(random: Random, plan: Plan, needs: tuple[str, ...]) -> Plan:
    """Return the plan with its faults, and the settings that its defect needs."""
    changed: dict[str, Any] = {}
    found = strikes.any_kind(random, plan, few="crowd" in needs)
    if "crowd" in needs:
        changed |= {"think": 500 * MS, "rest": 50 * MS, "wait": 6000 * MS, "lingers": 0.3}
    if "one_wakeup" in needs:
        changed["wakeups"] = True
    if "renewed" in needs:
        changed |= {"extends": 0.7, "visible": True, "watches": False}
    if "late" in needs:
        found += strikes.late(random, plan)
    if "busy" in needs:
        changed |= {"rest": 100 * MS, "think": int(plan.ttl * 0.6), "locks": 1}
    if "deaths" in needs:
        found = strikes.deaths(random, plan)
        # The remaining clients never stop asking, so that the lock is dead beyond doubt.
        length = 3000 * MS + 3 * (plan.ttl + plan.bound)
        changed |= {"length": length, "crash": 0, "rest": 50 * MS, "locks": 1}
    last = max((s.at + s.duration for s in found), default=0)
    if random.random() < 0.7 and not plan.loss:
        # Long enough to see the lock come back after the last fault.
        length = changed.get("length", plan.length)
        changed["length"] = max(length, last + plan.ttl + plan.bound + 500 * MS)
    return replace(plan, strikes=tuple(sorted(found, key=lambda s: s.at)), **changed)
