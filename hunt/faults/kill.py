"""Crashes simulated servers and clients, and restarts servers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fencepost.hunt.faults.simulated import Action, Inject, Simulated
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, NEVER, Event, Node, Reaper
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import Drawn
from fencepost.workloads.contract.lock import Failed

BOOT = 5 * MS
"""The shortest time in which a server restarts."""


def _kill(setting: Setting) -> Iterator[Action]:
    for server in range(len(setting.servers)):
        yield Action("kill", "one", partial(crash, server, False))
    for client in range(len(setting.clients)):
        yield Action("kill", "client", partial(kill_client, client), client)


def crash(index: int, power: bool, run: Run, event: Event | None) -> None:
    """Crash a server, with or without a loss of `power`; it restarts after the setting's time."""
    server = run.servers[index]
    if not server.up:
        return
    what = "loses power" if power else "crashes"
    lasts = run.setting.restart_ns
    back = "" if lasts is None else " and restarts"
    if lasts:
        back = f" and restarts {lasts / 1e9:.3g} s later"
    server.crash(power)
    words = f"{server.name} {what}{back}" + ("" if server.kept else ", its data gone")
    family = "power" if power else "kill"
    until = None if lasts is None else max(lasts, BOOT)
    run.faults.begin(family, [server.name], {}, words, server.start, until)


def kill_client(index: int, run: Run, event: Event | None) -> None:
    """Kill a client; the harness then records the outcome of its op as unknown."""
    node = run.clients[index]
    # At least one client must remain to ask for the lock.
    if not node.up or sum(client.up for client in run.clients) == 1:
        return
    node.up = False
    # Its tasks stop at their next step.
    node.paused_until = NEVER
    _end(run, node, f"{node.name} is killed")


def end_client(run: Run, node: Node, words: str) -> None:
    """End the process of a client, as an exception in its main thread does. If it is the last
    client, another process may start on its node."""
    client = next((one for one in run.clients if one is node), None)
    if client is None or not client.up:
        return
    if sum(one.up for one in run.clients) > 1:
        client.up = False
        client.paused_until = NEVER
    _end(run, client, words)


def _end(run: Run, node: ClientNode, words: str) -> None:
    world, process = run.world, node.out.process
    run.faults.begin("kill", [node.name], {}, words, lasts=1, receipt={"processes": [process]})

    def die() -> None:
        for task in world.tasks:
            if task.node is node:
                world.running = task
                task.kill()
        world.running = None
        run.network.died(node)
        invoked = [row for row in run.rows if row[1] == node.out.process]
        if invoked and invoked[-1][2] == "invoke":
            gone = Failed("killed", "the worker is gone; whether this happened is not known")
            f = invoked[-1][3]
            process, step = node.out.process, world.step
            run.rows.append((world.now, process, "info", f, {}, gone, node.name, step))
        run.gone(node)

    world.at(world.now, Reaper(world.nowhere, die))


def drawn_crash(power: bool, drawn: Drawn, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        for number, server in enumerate(run.servers):
            if server.name in drawn.targets:
                crash(number, power, run, event)
        for number, client in enumerate(run.clients):
            if client.name in drawn.targets:
                kill_client(number, run, event)
        return True

    return inject


def lacks(asked: Asked, setting: Setting) -> str:
    """Say why the simulated world has no such crash: a server restarts as the setting says."""
    lacking = asked.variant in ("kept", "wiped", "never")
    return f"the simulated world has no {asked.family}/{asked.variant}" if lacking else ""


SIMULATED = Simulated(
    "kill",
    _kill,
    drawn=partial(drawn_crash, False),
    lacks=lacks,
    restarts=True,
    betrays_store=True,
    kills=True,
)
