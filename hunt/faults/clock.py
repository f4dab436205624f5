"""Changes the wall clocks of simulated servers: they jump, drift or strobe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fencepost.hunt.faults.simulated import Action, Inject, Simulated, nodes_of, seconds
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.network import Server
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, Event, Timer
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import Drawn


def _clock(setting: Setting) -> Iterator[Action]:
    ttl, servers = setting.ttl_ns, range(len(setting.servers))
    for by in (ttl * 11 // 10, -ttl * 11 // 10, ttl // 2):
        for server in servers:
            yield Action("clock", "jump", partial(_jump, server, by))
    for rate in (3.0, 0.5):
        for server in servers:
            yield Action("clock", "drift", partial(_drift, server, rate))
    for server in servers:
        yield Action("clock", "strobe", partial(_strobe, server, ttl * 11 // 10, 150 * MS))


def _begin(run: Run, server: Server, words: str, arguments: dict[str, Any]) -> str:
    """Record a clock fault, at whose end the clock is set right; return its name."""

    def undo() -> None:
        server.settle()
        server.clock.right(run.world.now)

    words = f"the clock of {server.name} {words}"
    return run.faults.begin("clock", [server.name], arguments, words, undo)


def _jump(index: int, by: int, run: Run, event: Event | None) -> None:
    server = run.servers[index]
    server.settle()
    server.clock.jump(run.world.now, by)
    where = "ahead" if by > 0 else "back"
    _begin(run, server, f"jumps {where} by {seconds(abs(by))}", {"offset_s": by / 1e9})


def _drift(index: int, rate: float, run: Run, event: Event | None) -> None:
    server = run.servers[index]
    server.settle()
    server.clock.drift(run.world.now, rate)
    _begin(run, server, f"runs at {rate:g} times its rate", {"kind": "drift", "rate": rate})


def _strobe(index: int, by: int, period: int, run: Run, event: Event | None) -> None:
    server, world = run.servers[index], run.world
    arguments = {"kind": "strobe", "offset_s": by / 1e9, "period_s": period / 1e9}
    name = _begin(run, server, f"is {seconds(by)} ahead and right in turns", arguments)
    ahead = False

    def turn() -> None:
        nonlocal ahead
        if name in run.faults.on:
            server.settle()
            server.clock.jump(world.now, -by if ahead else by)
            ahead = not ahead
            world.at(world.now + period, Timer(world.nowhere, turn))

    turn()


def _refuses(setting: Setting) -> str:
    if MODELS[setting.model].wall_leases:
        return ""
    return f"leases of {setting.kind} run on monotonic clocks, and hunt skews wall clocks alone"


def _drawn(drawn: Drawn, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        given, world = drawn.arguments, run.world
        nodes = [
            node for node in nodes_of(run, drawn.targets) if isinstance(node, Server | ClientNode)
        ]
        offset = round(float(given.get("offset_s", 0.0)) * 1e9)

        def change(by: int) -> None:
            for node in nodes:
                if isinstance(node, Server):
                    node.settle()
                if given.get("kind") == "drift":
                    node.clock.drift(world.now, float(given["rate"]))
                else:
                    node.clock.jump(world.now, by)

        def undo() -> None:
            for node in nodes:
                if isinstance(node, Server):
                    node.settle()
                node.clock.right(world.now)

        change(offset)
        words = f"the clocks of {', '.join(drawn.targets)} are changed"
        name = run.faults.begin("clock", drawn.targets, given, words, undo, lasts)
        if given.get("kind") == "strobe":
            _strobe_all(run, name, change, offset, round(float(given["period_s"]) * 1e9))
        return True

    return inject


def _strobe_all(run: Run, name: str, change: Callable[[int], None], by: int, period: int) -> None:
    world = run.world

    def turn(by: int) -> None:
        if name in run.faults.on:
            change(by)
            world.at(world.now + period, Timer(world.nowhere, partial(turn, -by)))

    world.at(world.now + period, Timer(world.nowhere, partial(turn, -by)))


def _lacks(asked: Asked, setting: Setting) -> str:
    if asked.target in ("client", "clients"):
        own = "only your own lock reads the wall clock of a simulated client"
        return "" if setting.own else own
    if not MODELS[setting.model].wall_leases:
        return f"leases of {setting.kind} run on monotonic clocks"
    return "the simulated world has no clock/monotonic" if asked.variant == "monotonic" else ""


SIMULATED = Simulated(
    "clock", _clock, refuses=_refuses, drawn=_drawn, lacks=_lacks, betrays_store=True
)
