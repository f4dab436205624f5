"""Simulates the work of clients that elect a leader: campaign, and work while leading.

The work is a series of beats. In each one the leader reads and writes the resource, as the holder
of a lock does. It stops when its elector calls `stopped`, when its deadline passes, and at the
end of its time. Its process then ends, unless its elector can resign, or its client waits for
callbacks only (`stops`). An elector that drives its work has no beats but the jobs that its library
sends (workloads/electors/jobs.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from fencepost.hunt.lock_error import LockError
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.record import Row
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, World
from fencepost.hunt.work import BETWEEN, RESOURCE, Plan, do, give_back, granted
from fencepost.workloads.client.client import Client
from fencepost.workloads.contract.lock import Indeterminate
from fencepost.workloads.electors.jobs import Jobs
from fencepost.workloads.electors.plain import CALLBACK, beat_ns

_REFUSED = 200 * MS
"""Between two campaigns, if the first one was lost, as on nodes (workloads/client/reigns.py)."""
_CAMPAIGNS = 6
"""How long a client campaigns, with its successors, in leases."""
_BEATS = 5
"""Beats of a lease, if the client is a real program."""


def reigns(client: Client, plan: Plan, setting: Setting, world: World, node: ClientNode) -> None:
    """Execute the plan: campaign, lead, and step down, as often as it says."""
    client.take_jobs()
    for number in range(plan.holds):
        if number:
            world.sleep(BETWEEN)
        _reign(client, plan, setting, world, node)


def _between_ns(setting: Setting) -> int:
    """Return the time between two beats; those of a real program come less often, because each of
    their messages takes real time."""
    usual = beat_ns(setting.ttl_ns)
    return max(usual, setting.ttl_ns // _BEATS) if setting.live else usual


def must_elect(rows: Iterable[Row]) -> None:
    """Raise LockError if no candidate led in an undisturbed run: a hunt would have nothing to
    judge."""
    asked = [row for row in rows if row[3] == "acquire" and row[2] != "invoke"]
    if not any(row[2] == "ok" for row in asked):
        errors = [row[5] for row in asked if row[5] is not None]
        why = f": {errors[-1]}" if errors else ""
        raise LockError(f"no candidate was elected in a run without faults{why}")


def _reign(client: Client, plan: Plan, setting: Setting, world: World, node: ClientNode) -> None:
    within = _CAMPAIGNS * setting.ttl_ns
    hold = granted(client, setting, world, node, within, _REFUSED)
    if hold is None:
        return
    until = world.now + plan.works_ns
    beat = _between_ns(setting)
    jobs = client.jobs
    while world.now < until:
        if not client.leads(hold):
            if setting.stops != CALLBACK:
                client.leave()  # as an application exits in this callback
            return
        if jobs is not None:
            if not _job(client, hold, node, jobs, min(beat, until - world.now)):
                return
            continue
        if not _beat(client, hold, node):
            return
        world.sleep(beat)
    if jobs is not None and client.resigns and not _end_loop(client, hold, setting, world, node):
        return
    node.begins("release")
    give_back(client, hold)


def _job(client: Client, hold: str, node: ClientNode, jobs: Jobs, wait_ns: int) -> bool:
    """Do the next job, if one is sent in time; return False if the process is gone."""
    job = jobs.take(wait_ns / 1e9)
    if job is None:
        return True
    remains = True
    if job.point:
        client.reach(job.point)
    else:
        remains = _beat(client, hold, node, jobs=list(job.names))
    job.ended.set()
    return remains


def _end_loop(client: Client, hold: str, setting: Setting, world: World, node: ClientNode) -> bool:
    """Ask the leader to resign, and do the jobs that its library sends until it has stopped. Return
    False if the process is gone."""
    elector, until = client.elector, world.now + setting.ttl_ns
    assert elector.jobs is not None, "the leader drives its work"
    with suppress(Indeterminate):  # the release tells it
        elector.ask_to_resign()
    while elector.runs and client.leads(hold) and world.now < until:
        if not _job(client, hold, node, elector.jobs, beat_ns(setting.ttl_ns)):
            return False
    return True


def _beat(client: Client, hold: str, node: ClientNode, **more: Any) -> bool:
    """Read and write; return False if an answer is unknown, because the process is gone then."""
    type, read = do(client, node, "read", {"resource": RESOURCE, "hold": hold})
    if type == "ok" and client.leads(hold):
        value = {"resource": RESOURCE, "version": read["version"], "hold": hold}
        type, _ = do(client, node, "write", value | more)
    return type != "info"
