"""The events that a client writes, with their stamps, in the manner of the harness' own worker."""

from __future__ import annotations

from typing import Any, Protocol

from tests.simulated.cluster import Cluster
from tests.simulated.defects import Defect
from tests.simulated.line import Refused
from tests.simulated.network import Network
from tests.simulated.plan import Plan
from tests.simulated.quorum import Quorum
from tests.simulated.resource import Store
from tests.simulated.service import Service
from tests.simulated.truth import Truth
from tests.simulated.world import World


class Sim(Protocol):
    """State that all parts of a run share."""

    world: World
    network: Network
    cluster: Cluster
    service: Service
    quorum: Quorum
    store: Store
    plan: Plan
    defect: Defect
    truth: Truth

    def record(
        self,
        stamp: int,
        process: int | str,
        type: str,
        f: str,
        value: dict[str, Any],
        error: list[str] | None = None,
        node: str | None = None,
    ) -> None: ...


class Events:
    """`process`: the number under which the client writes; `announced`: by which the harness knows
    it; `open_ops`: its open ops; `last`: its latest stamp."""

    def __init__(self, sim: Sim, number: int) -> None:
        self._sim = sim
        self.node = sim.plan.client_names[number]
        self.process = number
        self.announced = number
        self.open_ops: list[tuple[int, str]] = []
        self.last = 0
        self.error = sim.plan.errors[number]

    def stamp(self) -> int:
        return self._sim.plan.clock(self._sim.world.now) + self.error

    def write(self, type: str, f: str, value: dict[str, Any], error: Refused | None = None) -> int:
        """Record an event; return its stamp."""
        stamp = self.last = self.stamp()
        told = None if error is None else [error.kind, error.text]
        self._sim.record(stamp, self.process, type, f, dict(value), told, self.node)
        return stamp

    def invoke(self, f: str, value: dict[str, Any]) -> int:
        self.open_ops.append((self.process, f))
        return self.write("invoke", f, value)

    def complete(
        self, type: str, f: str, value: dict[str, Any], error: Refused | None = None
    ) -> int:
        stamp = self.write(type, f, value, error)
        self.open_ops.pop()
        return stamp

    def succeed(self) -> None:
        """Let the harness expect a successor."""
        self.announced = self.process + self._sim.plan.clients

    def buried(self) -> None:
        """Let the harness notice that the program is dead, and complete its open ops."""
        for process, f in self.open_ops:
            error = ["killed", "the worker has ended; whether this happened is not known"]
            stamp = self._sim.plan.clock(self._sim.world.now)
            self._sim.record(stamp, process, "info", f, {}, error, self.node)
        self.open_ops.clear()
