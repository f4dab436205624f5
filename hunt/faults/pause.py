"""Pauses simulated clients and servers."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.hunt.faults.action import Action, Inject, seconds
from fencepost.hunt.faults.simulated import Simulated
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event, Node


def _pause(setting: Setting) -> Iterator[Action]:
    ttl = setting.ttl_ns
    for lasts in (ttl * 11 // 10, ttl // 2):
        for client in range(len(setting.clients)):
            yield Action("pause", "client", _pause_client(client, lasts), client)
        for server in range(len(setting.servers)):
            yield Action("pause", "server", _pause_server(server, lasts))


def _pause_client(index: int, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        return _paused(run, run.clients[index], lasts)

    return inject


def _pause_server(index: int, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        return _paused(run, run.servers[index], lasts)

    return inject


def _paused(run: Run, node: Node, lasts: int) -> bool:
    until = run.world.now + lasts
    if not node.up or node.paused_until > run.world.now:
        return True
    node.paused_until = until
    words = f"{node.name} is paused for {seconds(lasts)}"
    run.faults.begin("pause", [node.name], {}, words, lambda: None, lasts)
    return True


SIMULATED = Simulated("pause", _pause, slows=True)
