"""Simulates the work of clients: acquire the lock, read, work, write, release.

The schedule determines the durations. A hold is short compared with the lease, takes most of it, or
exceeds it. Contention exposes defects, so by default all clients ask at once, and a client that is
refused retries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.schedule import EACH, Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, World
from fencepost.workloads.client.client import Client

LOCK, RESOURCE = "orders", "account"
BEGINS, HOLDS_FOR, EXTENDS, MORE = range(EACH)
"""Offsets in a client's part of a schedule's head."""
BETWEEN = 20 * MS
HURRIES = 2
"""A bit of the number at EXTENDS."""
_OFTEN = 12
"""A client asks all the time if it rests for less than a tenth of the bound (design.md, 4)."""
_HASTY = 10
"""How often a client in a hurry asks again at once."""


@dataclass(frozen=True)
class Plan:
    """How long a client works under the lock, and how often. `hurries`: if it is refused, it asks
    again at once, a few times."""

    works_ns: int
    extends: bool
    holds: int
    hurries: bool = False

    @staticmethod
    def of(setting: Setting, schedule: Schedule, client: int) -> Plan:
        works = work_times(setting)
        _, holds_for, extends, more = schedule.part(client)
        return Plan(
            works[holds_for % len(works)],
            setting.extends and extends % 2 == 1,
            min(setting.holds, 1 + more),
            extends & HURRIES != 0,
        )


def begins_ns(setting: Setting, schedule: Schedule, client: int) -> int:
    """Return when a client begins."""
    times = begin_times(setting)
    return times[schedule.part(client)[BEGINS] % len(times)] + client * MS


def begin_times(setting: Setting) -> tuple[int, ...]:
    lease = setting.lease_ns
    return (0, lease // 20, lease // 4)


def work_times(setting: Setting) -> tuple[int, ...]:
    ttl = setting.ttl_ns
    if setting.elector and setting.live:  # each message takes real time
        return (ttl // 2, ttl * 3 // 2, ttl * 3)
    if setting.elector:
        return (ttl // 2, ttl * 2, ttl * 4)
    times = (ttl // 20, ttl // 4, ttl // 40)
    return (*times, setting.lease_ns * 6 // 5) if setting.slow else times


def sections(client: Client, plan: Plan, setting: Setting, world: World, node: ClientNode) -> None:
    """Execute the plan, each op as a real client executes it (workloads/client)."""
    for number in range(plan.holds):
        if number:
            world.sleep(BETWEEN)
        _section(client, plan, setting, world, node)


def _section(client: Client, plan: Plan, setting: Setting, world: World, node: ClientNode) -> None:
    lease = setting.lease_ns
    # It retries until another client's lease would have expired. A real client also asks within the
    # next lease, and so sees that a late message has ended that one.
    within = lease * 2 if setting.live else lease * 5 // 4
    hasty = _HASTY if plan.hurries else 0
    hold = granted(client, setting, world, node, within, lease * 3 // 4, hasty)
    if hold is None:
        return
    about = {"lock": LOCK, "hold": hold}
    again: str | None = None
    if setting.reentrant:
        # At once, and within the first hold; or late, and until its end: then it must prolong it.
        if plan.extends:
            world.sleep(plan.works_ns)
        type, answer = do(client, node, "acquire", {"lock": LOCK, "ttl": setting.ttl_ns})
        again = str(answer["hold"]) if type == "ok" else None
        if again is not None and not plan.extends:
            type = _release(client, node, again)
        if type == "info":
            return
    if plan.extends and client.extends:
        world.sleep(plan.works_ns // 2)
        if do(client, node, "extend", {**about, "ttl": setting.ttl_ns})[0] == "info":
            return
    type, read = do(client, node, "read", {"resource": RESOURCE, "hold": hold})
    if type == "ok":
        world.sleep(plan.works_ns)
        value = {"resource": RESOURCE, "version": read["version"], "hold": hold}
        if do(client, node, "write", value)[0] == "info":
            return
    if again is not None and plan.extends and _release(client, node, again) == "info":
        return
    _release(client, node, hold)


def _release(client: Client, node: ClientNode, hold: str) -> str:
    """Release a hold; return how that ended. After "info" the process is gone."""
    return do(client, node, "release", {"lock": LOCK, "hold": hold})[0]


def granted(
    client: Client,
    setting: Setting,
    world: World,
    node: ClientNode,
    within: int,
    pause: int,
    hasty: int = 0,
) -> str | None:
    """Ask for the lock until it is granted, for up to `within` ns, with pauses between; the first
    `hasty` ones are short. Return the hold, or None.

    A program often waits for the lock by itself. A search with real clients plays too few schedules
    to meet the end of a lease by chance, so this wait is part of the pause there.
    """
    until = world.now + within
    while world.now < until:
        begun = world.now
        type, answer = do(client, node, "acquire", {"lock": LOCK, "ttl": setting.ttl_ns})
        if type == "ok":
            return str(answer["hold"])
        waited = world.now - begun if setting.live else 0
        world.sleep(BETWEEN if hasty > 0 else max(BETWEEN, pause - waited))
        hasty -= 1
    return None


def do(
    client: Client, node: ClientNode, f: str, value: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    node.begins(f)
    found = client.apply(f, value)
    node.activity = "work"
    return found


def give_back(client: Client, hold: str) -> None:
    """Release a hold; a leader that cannot resign ends its process."""
    if client.resigns:
        client.apply("release", {"lock": LOCK, "hold": hold})
    else:
        client.leave()


def final_acquire(client: Client, setting: Setting, world: World) -> bool:
    """Acquire the lock a last time, and read; return whether the first request was granted.

    After a refusal the client retries without contention, until the leases and the bound have
    passed: liveness blames the lock only then (checker/facts/waits.py). With a user lock it asks
    all the time, because its own requests may keep the lock taken.
    """
    granted, waits = False, 2 * setting.ttl_ns + setting.bound_ns
    pause = setting.bound_ns // _OFTEN if setting.own is not None else waits
    number, until = 0, 0
    while number < 4 or world.now < until:
        if number == 1:
            until = world.now + waits
        if number and (number == 1 or world.now < until):
            world.sleep(pause)
        type, answer = client.apply("acquire", {"lock": LOCK, "ttl": setting.ttl_ns})
        if type == "ok":
            give_back(client, str(answer["hold"]))
            granted = number == 0
            break
        world.sleep(BETWEEN)
        number += 1
    client.apply("read", {"resource": RESOURCE})
    return granted
