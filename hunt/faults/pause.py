"""Pauses simulated clients and servers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fencepost.hunt.faults.simulated import Action, Inject, Simulated, nodes_of, seconds
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, Event, Node, Timer
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import Drawn

_LOOK = 20 * MS


def _pause(setting: Setting) -> Iterator[Action]:
    # Two fifths of a lease end a little before the time-outs of programs, and in another's hold.
    shorter = setting.ttl_ns * 2 // 5 if setting.live else setting.ttl_ns // 2
    for lasts in (setting.lease_ns * 11 // 10, shorter):
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


def _drawn(drawn: Drawn, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        nodes = [node for node in nodes_of(run, drawn.targets) if node.up]
        if not nodes or any(node.paused_until > run.world.now for node in nodes):
            return True
        until = drawn.arguments.get("until") == "other-holds"
        words = f"{', '.join(drawn.targets)} is paused"
        if not until:
            for node in nodes:
                node.paused_until = run.world.now + lasts
            words = f"{words} for {seconds(lasts)}"
            run.faults.begin("pause", drawn.targets, drawn.arguments, words, _nothing, lasts)
            return True
        name = run.faults.begin("pause", drawn.targets, drawn.arguments, words, _nothing, lasts)
        _until_granted(run, nodes[0], name, len(run.rows))
        return True

    return inject


def _until_granted(run: Run, node: Node, name: str, first: int) -> None:
    """Pause a client until another one is granted the lock, or until the fault ends."""
    world = run.world

    def look() -> None:
        if name not in run.faults.on or not node.up:
            return
        if any(row[2:4] == ("ok", "acquire") and row[6] != node.name for row in run.rows[first:]):
            run.faults.on[name]()
            return
        node.paused_until = world.now + _LOOK + 1
        world.at(world.now + _LOOK, Timer(world.nowhere, look))

    look()


def _nothing() -> None:
    """Undo nothing: the fault ends by itself."""


def _lacks(asked: Asked, setting: Setting) -> str:
    return "the simulated world has no pause/renewal" if asked.variant == "renewal" else ""


# A leader that is paused past its lease cannot know it, unless its elector has named a deadline.
SIMULATED = Simulated(
    "pause",
    _pause,
    usual=lambda setting: setting.deadlines,
    drawn=_drawn,
    lacks=_lacks,
    slows=True,
)
