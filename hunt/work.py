"""Simulates the work of clients: acquire the lock, read, work, write, release.

The schedule determines the durations. A hold is short compared with the lease, takes most of it, or
exceeds it. Contention exposes defects, so by default all clients ask at once, and a client that is
refused retries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.schedule import EACH, HEAD, Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, World
from fencepost.workloads.client.client import Client

LOCK, RESOURCE = "orders", "account"
BEGINS, HOLDS_FOR, EXTENDS, MORE = range(EACH)
"""Offsets in a client's part of a schedule's head."""
_BETWEEN = 20 * MS


@dataclass(frozen=True)
class Plan:
    """When a client begins, how long it works under the lock, and how often."""

    begins_ns: int
    works_ns: int
    extends: bool
    holds: int

    @staticmethod
    def of(setting: Setting, schedule: Schedule, client: int) -> Plan:
        place = HEAD + EACH * client
        begins, works = begin_times(setting), work_times(setting)
        return Plan(
            begins[schedule.at(place + BEGINS) % len(begins)] + client * MS,
            works[schedule.at(place + HOLDS_FOR) % len(works)],
            setting.extends and schedule.at(place + EXTENDS) % 2 == 1,
            min(setting.holds, 1 + schedule.at(place + MORE)),
        )


def begin_times(setting: Setting) -> tuple[int, ...]:
    ttl = setting.ttl_ns
    return (0, ttl // 20, ttl // 4)


def work_times(setting: Setting) -> tuple[int, ...]:
    ttl = setting.ttl_ns
    times = (ttl // 20, ttl // 4, ttl // 40)
    return (*times, ttl * 6 // 5) if setting.slow else times


def sections(client: Client, plan: Plan, setting: Setting, world: World, node: ClientNode) -> None:
    """Execute the plan, each op as a real client executes it (workloads/client)."""
    for number in range(plan.holds):
        if number:
            world.sleep(_BETWEEN)
        _section(client, plan, setting, world, node)


def _section(client: Client, plan: Plan, setting: Setting, world: World, node: ClientNode) -> None:
    hold = _acquire(client, setting, world, node)
    if hold is None:
        return
    about = {"lock": LOCK, "hold": hold}
    if setting.reentrant and not _again(client, setting, node):
        return
    if plan.extends and client.extends:
        world.sleep(plan.works_ns // 2)
        if _do(client, node, "extend", {**about, "ttl": setting.ttl_ns})[0] == "info":
            return
    type, read = _do(client, node, "read", {"resource": RESOURCE, "hold": hold})
    if type == "ok":
        world.sleep(plan.works_ns)
        value = {"resource": RESOURCE, "version": read["version"], "hold": hold}
        if _do(client, node, "write", value)[0] == "info":
            return
    _do(client, node, "release", about)


def _again(client: Client, setting: Setting, node: ClientNode) -> bool:
    """Acquire the lock a second time, and release that hold; return False if an answer is unknown,
    because the process is gone then."""
    type, answer = _do(client, node, "acquire", {"lock": LOCK, "ttl": setting.ttl_ns})
    if type == "ok":
        type, _ = _do(client, node, "release", {"lock": LOCK, "hold": answer["hold"]})
    return type != "info"


def _acquire(client: Client, setting: Setting, world: World, node: ClientNode) -> str | None:
    """Retry until another client's lease would have expired; return None if never granted."""
    ttl = setting.ttl_ns
    until = world.now + ttl * 5 // 4
    while world.now < until:
        type, answer = _do(client, node, "acquire", {"lock": LOCK, "ttl": ttl})
        if type == "ok":
            return str(answer["hold"])
        world.sleep(ttl * 3 // 4)
    return None


def _do(
    client: Client, node: ClientNode, f: str, value: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    node.begins(f)
    found = client.apply(f, value)
    node.activity = "work"
    return found


def final_acquire(client: Client, setting: Setting, world: World) -> bool:
    """Acquire the lock a last time, and read; return whether the first request was granted.

    After a refusal the client retries without contention, once the leases and the bound have
    passed: liveness blames the lock only then (checker/facts/waits.py).
    """
    granted = False
    for number in range(4):
        if number == 1:
            world.sleep(2 * setting.ttl_ns + setting.bound_ns)
        type, answer = client.apply("acquire", {"lock": LOCK, "ttl": setting.ttl_ns})
        if type == "ok":
            client.apply("release", {"lock": LOCK, "hold": answer["hold"]})
            granted = number == 0
            break
        world.sleep(_BETWEEN)
    client.apply("read", {"resource": RESOURCE})
    return granted
