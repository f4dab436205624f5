"""The faults of a virtual run: drawn, written and proved as in real ones."""

from __future__ import annotations

from typing import Any

from fencepost.nemesis.families import describe, facts
from fencepost.nemesis.schedule import Scheduled
from fencepost.nemesis.targets import PRIMARY, renamed
from long_runs.clients import Clients
from long_runs.state import Cuts
from long_runs.virtual_time import SECOND, VirtualTime


class Faults:
    """Injects faults. `primary`: the server that leads."""

    def __init__(
        self,
        time: VirtualTime,
        cuts: Cuts,
        clients: Clients,
        schedule: list[Scheduled],
        primary: str,
    ) -> None:
        self._time, self._cuts, self._clients = time, cuts, clients
        self._schedule, self._primary = schedule, primary

    def plan(self, number: int = 0) -> None:
        """Schedule one fault after another, so that future ones do not fill the heap."""
        if number < len(self._schedule) and not self._time.over_ns:
            fault = self._schedule[number]
            self._time.at(max(0, fault.at_s * SECOND - self._time.now), self._strike, number, fault)

    def _strike(self, number: int, drawn: Scheduled) -> None:
        self.plan(number + 1)
        if self._time.over_ns:
            return
        unsaid = {name: what for name, what in drawn.arguments.items() if name != "words"}
        targets, arguments = renamed(drawn.targets, unsaid, {PRIMARY: self._primary})
        words = describe(drawn.family, targets, arguments)
        value = {"fault": f"{drawn.family}-{number}", "phase": "start", "targets": targets}
        value["arguments"] = arguments | {"words": words}
        known = facts(drawn.family, targets, arguments)
        self._time.record("nemesis", "invoke", drawn.family, value | known)
        self._time.at(self._time.ms(3, 500), self._is_on, drawn, value | known)

    def _is_on(self, drawn: Scheduled, value: dict[str, Any]) -> None:
        self._cuts.on[value["fault"]] = value | {"family": drawn.family}
        struck = [client for client in self._clients.all if client.node in value["targets"]]
        killed = [self._clients.kill(client) for client in struck if drawn.family == "kill"]
        for client in struck:
            if drawn.family == "pause" and client.alive:
                client.wakes = self._time.now + int(drawn.duration_s * SECOND)
        receipt = self._receipt(value, "T") | ({"processes": killed} if killed else {})
        self._time.record("nemesis", "ok", drawn.family, value | {"receipt": receipt})
        self._time.at(drawn.duration_s * SECOND, self._heal, drawn.family, value)

    def _heal(self, family: str, value: dict[str, Any]) -> None:
        value = {name: value[name] for name in ("fault", "targets", "arguments")}
        value["phase"] = "end"
        self._time.record("nemesis", "invoke", family, value)
        self._time.at(self._time.ms(3, 300), self._is_off, family, value)

    def _is_off(self, family: str, value: dict[str, Any]) -> None:
        del self._cuts.on[value["fault"]]
        for client in self._clients.all:
            if client.node in value["targets"] and not client.alive:
                self._clients.succeed(client)
        self._time.record("nemesis", "ok", family, value | {"receipt": self._receipt(value, "S")})

    def _receipt(self, value: dict[str, Any], state: str) -> dict[str, Any]:
        links = value["arguments"].get("links", ())
        answer = "silent" if state == "T" else "open"
        if links:
            how = f"{answer} across {len(links)} of {len(links)} probed ways"
            probes = {f"{near} to {far}": answer for near, far in links}
            return {"proved": True, "how": how, "probes": probes}
        how = "; ".join(f"pid 41 on {node} is in state {state}" for node in value["targets"])
        return {"proved": True, "how": how, "pid": 41, "state": state}
