"""Pauses simulated clients and servers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fencepost.hunt.faults.simulated import Action, Simulated, seconds
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event, Node


def _pause(setting: Setting) -> Iterator[Action]:
    ttl = setting.ttl_ns
    for lasts in (ttl * 11 // 10, ttl // 2):
        for client in range(len(setting.clients)):
            yield Action("pause", "client", partial(_pause_client, client, lasts), client)
        for server in range(len(setting.servers)):
            yield Action("pause", "server", partial(_pause_server, server, lasts))


def _pause_client(index: int, lasts: int, run: Run, event: Event | None) -> None:
    _stop(run, run.clients[index], lasts)


def _pause_server(index: int, lasts: int, run: Run, event: Event | None) -> None:
    _stop(run, run.servers[index], lasts)


def _stop(run: Run, node: Node, lasts: int) -> None:
    now = run.world.now
    if node.up and node.paused_until <= now:
        node.paused_until = now + lasts
        words = f"{node.name} is paused for {seconds(lasts)}"
        run.faults.begin("pause", [node.name], {}, words, lasts=lasts)


# A leader that is paused past its lease cannot know it, unless its elector has named a deadline.
SIMULATED = Simulated("pause", _pause, usual=lambda setting: setting.deadlines, slows=True)
