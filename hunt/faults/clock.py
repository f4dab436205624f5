"""Changes the wall clocks of simulated servers: they jump, drift or strobe."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fencepost.hunt.faults.simulated import Action, Simulated, seconds
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.sim.network import Server
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, Event, Timer


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


SIMULATED = Simulated("clock", _clock, refuses=_refuses, betrays_store=True)
