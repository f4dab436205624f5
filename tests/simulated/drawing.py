"""Draw the plan of a run from its seed.

Sound runs are drawn without restrictions. A run with a defect is drawn where that defect can occur
(suiting.py), and otherwise in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from fencepost.checker.liveness import DEFAULT_BOUND_S
from tests.simulated.defects import KINDS
from tests.simulated.plan import Plan
from tests.simulated.suiting import suited
from tests.simulated.world import MS, SECOND

_BOUND = round(DEFAULT_BOUND_S * 1000) * MS
"""The product's own bound, whatever the run."""


def draw(random: Random, way: str, defect: str = "none") -> Plan:
    """Draw a plan for a service of this kind."""
    needs = KINDS[defect].needs
    crowd, sessions = "crowd" in needs, way in ("close", "connection")
    lossy = random.random() < 0.15 and not crowd and "deaths" not in needs
    clients = random.choice((4, 5)) if crowd else random.choice((2, 3, 3, 4))
    error_bound = random.choice((0, 0, 0, 0, 1, 4)) * MS
    nameless = not sessions and random.random() < 0.1
    failed_release = "nothing" if random.random() < 0.15 else "ended"
    plan = Plan(
        way=way,
        defect=defect,
        clients=clients,
        servers=_servers(random, way),
        locks=1 if crowd else random.choice((1, 1, 1, 2)),
        length=random.randrange(5000, 8000) * MS,
        ttl=random.randrange(400, 1100) * MS,
        bound=_BOUND,
        wait=random.randrange(500, 3500) * MS,
        timeout=random.randrange(300, 500) * MS,
        storage_timeout=random.choice((300, 600, 1500)) * MS,
        think=random.choice((100, 400, 800)) * MS,
        rest=random.choice((300, 1000, 2500)) * MS,
        shared=0.0,
        tokens="none",
        guard="none",
        promises={},
        loss=0.03 if lossy else 0.0,
        errors=tuple(random.randint(-error_bound, error_bound) for _ in range(clients)),
        error_bound=error_bound,
        failed_release=failed_release,
        one_resource=random.random() < 0.3,
        nameless=nameless,
        # A hold that continues after a failed release would end with an unrecorded close.
        silent_close=failed_release == "ended" and random.random() < 0.15,
        careful=random.random() < 0.5,
        watches=random.random() < 0.8,
        polite=random.random() < 0.25,
        twice=0.0 if nameless else random.choice((0.0, 0.2)),
        confirm=random.random() < 0.5,
        naive=way == "close" and random.random() < 0.5,
        visible=random.random() < (0.5 if way == "connection" else 0.92),
        wakeups=sessions and random.random() < 0.7,
        crash=random.randrange(1000, 5000) * MS if random.random() < 0.08 else 0,
        # The harness is killed, and leaves its recorded part.
        cut_off=random.randrange(1000, 8000) * MS
        if defect == "none" and random.random() < 0.1
        else 0,
    )
    plan = replace(plan, **_data(random, plan, needs))
    plan = replace(plan, **_library(random, plan))
    plan = replace(plan, **_scene(random, plan, needs))
    return suited(random, plan, needs)


def _servers(random: Random, way: str) -> int:
    if way == "quorum":
        return random.choice((3, 3, 5))
    return 3 if random.random() < 0.7 else 1


def _data(random: Random, plan: Plan, needs: tuple[str, ...]) -> dict[str, Any]:
    """Draw the tokens, the guard of the resource, and how many holds are shared."""
    if plan.way == "quorum":
        return {"guard": random.choice(("none", "compare-and-set"))}
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
    elif "crowd" in needs or ("linearizable" in KINDS[plan.defect].must and random.random() < 0.7):
        shared = 0.0
    return {"tokens": tokens, "guard": guard, "shared": shared}


def _library(random: Random, plan: Plan) -> dict[str, Any]:
    """Draw how the client's library behaves, and the promises that it keeps."""
    lease, sessions = plan.way == "lease", plan.way in ("close", "connection")
    ordinary = lease and not plan.nameless
    uneven = plan.way in ("lease", "quorum") and random.random() < 0.1
    # A background renewal ignores a longer lease that was requested since.
    watchdog = ordinary and not uneven and random.random() < 0.3
    reentrant = ordinary and not uneven and not watchdog and random.random() < 0.2
    tells = sessions and not plan.loss
    return {
        "uneven": uneven,
        "watchdog": watchdog,
        "reentrant": reentrant,
        "lost_releases": 0.05 if plan.loss and lease else 0.0,
        "drift": random.choice((0.0, 0.02)) if plan.way == "quorum" else 0.0,
        "timeout": random.randrange(20, 150) * MS if plan.way == "quorum" else plan.timeout,
        "promises": {
            "minority": plan.servers > 1 and not plan.loss,
            "fifo": tells,
            "one_wakeup": tells,
            "true_refusals": lease and not plan.careful,
            "reentrant": reentrant,
        },
    }


def _scene(random: Random, plan: Plan, needs: tuple[str, ...]) -> dict[str, Any]:
    """Draw rare settings: impatient clients and long leases, long calm, coarse clocks, clients that
    ask for nothing, answers that the harness cannot read."""
    changed: dict[str, Any] = {}
    if random.random() < 0.15 and not needs:
        timeouts = (20, 300) if plan.way == "quorum" else (5, 20, 300)
        if plan.way == "quorum":
            # Failed tries would leave long leases on single servers, one after the other: such a
            # lock is dead for a while.
            changed["loss"] = 0.0
        changed["timeout"] = random.choice(timeouts) * MS
        changed["ttl"] = random.randrange(1000, 10_000) * MS
    if random.random() < 0.08 and not needs:
        changed["length"] = random.randrange(20, 40) * SECOND
    if random.random() < 0.08:
        changed["grain"] = random.choice((1, 4, 16)) * MS
        changed["errors"], changed["error_bound"] = (0,) * plan.clients, 0
    if random.random() < 0.05:
        changed["garbled"] = 0.02
    if random.random() < 0.15:
        changed["clients"], changed["idle"] = plan.clients + 1, 1
        changed["errors"] = (*changed.get("errors", plan.errors), 0)
    return changed
