"""Changes the wall clocks of simulated servers: they jump, drift or strobe."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fencepost.hunt.faults.action import Action, Inject, seconds
from fencepost.hunt.faults.simulated import Simulated
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.sim.network import Server
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, Event, Timer


def _clock(setting: Setting) -> Iterator[Action]:
    ttl = setting.ttl_ns
    jumps = (ttl * 11 // 10, -ttl * 11 // 10, ttl // 2)
    for by in jumps:
        for server in range(len(setting.servers)):
            yield Action("clock", "jump", _jump(server, by))
    for rate in (3.0, 0.5):
        for server in range(len(setting.servers)):
            yield Action("clock", "drift", _drift(server, rate))
    for server in range(len(setting.servers)):
        yield Action("clock", "strobe", _strobe(server, ttl * 11 // 10, 150 * MS))


def _right(run: Run, server: Server) -> Callable[[], None]:
    def undo() -> None:
        server.settle()
        server.clock.right(run.world.now)

    return undo


def _jump(index: int, by: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        server = run.servers[index]
        server.settle()
        server.clock.jump(run.world.now, by)
        where = "ahead" if by > 0 else "back"
        words = f"the clock of {server.name} jumps {where} by {seconds(abs(by))}"
        arguments = {"offset_s": by / 1e9}
        run.faults.begin("clock", [server.name], arguments, words, _right(run, server))
        return True

    return inject


def _drift(index: int, rate: float) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        server = run.servers[index]
        server.settle()
        server.clock.drift(run.world.now, rate)
        words = f"the clock of {server.name} runs at {rate:g} times its rate"
        arguments = {"kind": "drift", "rate": rate}
        run.faults.begin("clock", [server.name], arguments, words, _right(run, server))
        return True

    return inject


def _strobe(index: int, by: int, period: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        server, world = run.servers[index], run.world
        words = f"the clock of {server.name} is {seconds(by)} ahead and right in turns"
        arguments = {"kind": "strobe", "offset_s": by / 1e9, "period_s": period / 1e9}
        name = run.faults.begin("clock", [server.name], arguments, words, _right(run, server))
        ahead = False

        def turn() -> None:
            nonlocal ahead
            if name in run.faults.on:
                server.settle()
                server.clock.jump(world.now, -by if ahead else by)
                ahead = not ahead
                world.at(world.now + period, Timer(world.nowhere, turn))

        turn()
        return True

    return inject


def _refuses(setting: Setting) -> str:
    if MODELS[setting.model].wall_leases:
        return ""
    return f"leases of {setting.kind} run on monotonic clocks, and hunt skews wall clocks alone"


SIMULATED = Simulated("clock", _clock, refuses=_refuses)
