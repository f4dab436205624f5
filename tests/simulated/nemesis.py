"""Faults in the simulated world, recorded as the real director records its own.

Each is ordered, takes effect a little later, and then has its receipt; so does its end. The facts
of a family (impairs, links, forgets) come from nemesis.families, as in a real run.
"""

from __future__ import annotations

from typing import Any

from fencepost.nemesis.families import facts
from tests.simulated.clients import Client
from tests.simulated.events import Sim
from tests.simulated.network import Cut
from tests.simulated.plan import DOWN, Strike
from tests.simulated.truth import FaultSeen
from tests.simulated.world import MS

_POINT_MS = 1500
"""The timeout for a client to reach its failpoint; then the fault hits it anywhere."""


class Nemesis:
    def __init__(self, sim: Sim, clients: dict[str, Client]) -> None:
        self._sim = sim
        self._clients = clients
        self._cuts: dict[int, list[Cut]] = {}
        self._unproved = {n for n, strike in enumerate(sim.plan.strikes) if not strike.proved}
        for number, strike in enumerate(sim.plan.strikes):
            sim.world.at(strike.at, self._await, number, strike)

    def _await(self, number: int, strike: Strike) -> None:
        """Let a client reach its failpoint, and only then order the fault."""
        client = self._clients.get(strike.targets[0])
        if client is not None and client.os.dead:
            # It died by itself. It can no longer be killed, and the receipt shows that.
            if strike.family == "kill":
                self._start(number, strike)
            return
        if not strike.point or client is None:
            self._start(number, strike)
            return
        begun = [False]

        def there() -> None:
            if not begun[0]:
                begun[0] = True
                client.armed = ""
                if not client.os.dead and client.os is there_is:
                    client.os.pause()
                    self._sim.world.after(self._between(0, 5), self._start, number, strike)

        there_is = client.os
        client.armed, client.reached = strike.point, there
        self._sim.world.after(_POINT_MS * MS, there)

    def _stamp(self) -> int:
        """Return the time by the harness' clock."""
        return self._sim.plan.clock(self._sim.world.now)

    def _between(self, least: float, most: float) -> int:
        return self._sim.world.between(least, most)

    def _start(self, number: int, strike: Strike) -> None:
        sim = self._sim
        seen = FaultSeen(strike.family, strike.targets, tuple(_links(strike)), start=self._stamp())
        sim.truth.faults.append(seen)
        value = self._value(number, strike, "start")
        value |= facts(strike.family, list(strike.targets), strike.arguments)
        self._record("invoke", strike, value)
        struck = self._between(0, 4)
        sim.world.after(struck, self._strike, number, strike)
        proved = struck + self._between(30, 60)
        sim.world.after(proved, self._prove, strike, value, number)
        sim.world.after(max(strike.duration, proved + 1), self._end, number, strike, seen)

    def _prove(self, strike: Strike, value: dict[str, Any], number: int) -> None:
        type = "info" if number in self._unproved else "ok"
        self._record(type, strike, value, self._receipt(number, strike))

    def _end(self, number: int, strike: Strike, seen: FaultSeen) -> None:
        world = self._sim.world
        value = self._value(number, strike, "end")
        self._record("invoke", strike, value)
        healed = self._between(0, 4)
        world.after(healed, self._heal, number, strike)
        done = healed + self._between(1, 20)

        def prove() -> None:
            seen.end = self._stamp()
            self._record("ok", strike, value, {"proved": True, "how": "simulated"})

        world.after(done, prove)

    def _value(self, number: int, strike: Strike, phase: str) -> dict[str, Any]:
        return {
            "fault": f"{strike.family}-{number + 1}",
            "phase": phase,
            "targets": list(strike.targets),
            "arguments": strike.arguments,
        }

    def _record(
        self,
        type: str,
        strike: Strike,
        value: dict[str, Any],
        receipt: dict[str, Any] | None = None,
    ) -> None:
        shown = value if receipt is None else value | {"receipt": receipt}
        error = ["unproved", "simulated"] if type == "info" else None
        self._sim.record(self._stamp(), "nemesis", type, strike.family, shown, error)

    def _receipt(self, number: int, strike: Strike) -> dict[str, Any]:
        proved = number not in self._unproved
        receipt: dict[str, Any] = {"proved": proved, "how": "simulated", "pid": 100 + number}
        client = self._clients.get(strike.targets[0])
        if client is not None and strike.family == "kill":
            receipt["processes"] = [client.announced] if proved else []
        elif client is not None and strike.family == "pause":
            receipt |= {"process": client.announced, "at": strike.point or "wherever it was"}
        return receipt

    # The effects of faults.

    def _strike(self, number: int, strike: Strike) -> None:
        sim, target = self._sim, strike.targets[0]
        client = self._clients.get(target)
        match strike.family:
            case "partition" | "delay" | "meteor":
                self._cuts[number] = self._cut(strike)
            case "packet":
                sim.network.disturb(target, strike.arguments["kind"])
            case "kill" if client is not None:
                if client.os.dead:
                    self._unproved.add(number)
                else:
                    self._kill(client)
            case "pause" if client is not None:
                client.os.pause()
            case "pause":
                for name in strike.targets:
                    sim.cluster.servers[name].paused = True
            case "cpu":
                for name in strike.targets:
                    sim.cluster.servers[name].slow = True
            case "clock":
                for name in set(strike.targets) & set(sim.cluster.servers):
                    sim.cluster.servers[name].offset = strike.arguments["offset_ms"] * MS
            case family if family in DOWN:
                for name in strike.targets:
                    sim.cluster.down(name)
                sim.service.wipe(strike.targets)
                sim.quorum.wipe(strike.targets)
        sim.cluster.changed()

    def _heal(self, number: int, strike: Strike) -> None:
        sim, target = self._sim, strike.targets[0]
        client = self._clients.get(target)
        for cut in self._cuts.pop(number, ()):
            sim.network.heal(cut)
        if strike.family == "packet":
            sim.network.calm(target)
        elif strike.family == "kill" and client is not None:
            if client.os.dead:
                client.restart()
        elif strike.family == "pause" and client is not None:
            client.os.resume()
        for name in strike.targets:
            server = sim.cluster.servers.get(name)
            if server is None:
                continue
            if strike.family == "pause":
                server.paused = False
            elif strike.family == "cpu":
                server.slow = False
            elif strike.family == "clock":
                server.offset = 0
            elif strike.family in DOWN:
                server.up = True
        sim.cluster.changed()

    def _kill(self, client: Client) -> None:
        """The harness completes its open ops before the receipt is written."""
        ordered = self._sim.truth.faults[-1].start
        for fault in self._sim.truth.faults:
            if fault.family == "kill" and client.node in fault.targets:
                ordered = fault.start
        client.die(ordered)
        self._sim.world.after(self._between(12, 25), client.buried, client.os)

    def _cut(self, strike: Strike) -> list[Cut]:
        sim, arguments = self._sim, strike.arguments
        if strike.family == "delay":
            cuts = [Cut(frozenset({(arguments["source"], arguments["to"])}), held=1.0)]
        elif strike.family == "meteor":
            (node,) = strike.targets
            ways = [(node, to) for to in sim.plan.server_names]
            cuts = [Cut(frozenset(ways + [(to, node) for node, to in ways]))]
        else:
            lost = arguments.get("lost")
            ways = [
                *((near, far) for near, far in arguments["links"] if lost != "replies"),
                *((far, near) for near, far in arguments["links"] if lost != "requests"),
            ]
            rejects = arguments.get("how") == "reject"
            cuts = [Cut(frozenset(ways), held=0.4, rejects=rejects)]
        for cut in cuts:
            sim.network.cut(cut)
        return cuts


def _links(strike: Strike) -> list[tuple[str, str]]:
    if strike.family == "delay":
        return [(strike.arguments["source"], strike.arguments["to"])]
    return [(near, far) for near, far in strike.arguments.get("links", ())]
