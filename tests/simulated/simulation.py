"""One run, from its plan to its history, with the truth about it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from fencepost.checker.history.history import Op
from tests.simulated.clients import Client
from tests.simulated.cluster import Cluster
from tests.simulated.defects import Defect
from tests.simulated.drawing import draw
from tests.simulated.nemesis import Nemesis
from tests.simulated.network import Network
from tests.simulated.plan import Plan
from tests.simulated.quorum import Quorum
from tests.simulated.resource import Store
from tests.simulated.service import Service
from tests.simulated.state import Rules
from tests.simulated.truth import Truth
from tests.simulated.world import MS, World

_AFTER = 4000 * MS
"""The timeout for clients to finish their work at the end of the run."""


@dataclass(frozen=True)
class Run:
    """A history (`ops`) with its test.json (`test`), and the truth."""

    plan: Plan
    ops: list[Op]
    test: dict[str, Any]
    truth: Truth
    store: Store
    struck: int


class Simulation:
    def __init__(self, plan: Plan, seed: str) -> None:
        self.plan = plan
        self.world = World(Random(f"{seed}/world"))
        apart = plan.way == "quorum"
        self.network = Network(self.world, plan.loss, ordered=apart)
        self.cluster = Cluster(self.world, self.network, plan.server_names, independent=apart)
        self.defect = Defect(plan.defect, Random(f"{seed}/defect"))
        self.store = Store(self.world, plan.guard, self.defect)
        rules = Rules(plan.ends_with, plan.tokens, unseen_ns=plan.ttl, factor=plan.factor)
        self.service = Service(self.world, self.network, self.cluster, rules, self.defect)
        self.quorum = Quorum(self.world, self.cluster, plan.drift, self.service.order, self.defect)
        self.truth = Truth(plan)
        self._rows: list[tuple[int, int, Op]] = []
        self._clients = {
            client.node: client for client in (Client(self, n) for n in range(plan.clients))
        }
        Nemesis(self, self._clients)
        if plan.crash:
            self.world.at(plan.crash, self._crash)
        if plan.defect == "forgets":
            self.world.after(1000 * MS, self._forget)

    def record(
        self,
        stamp: int,
        process: int | str,
        type: str,
        f: str,
        value: dict[str, Any],
        error: list[str] | None = None,
        node: str | None = None,
    ) -> None:
        if self.plan.cut_off and self.world.now > self.plan.cut_off:
            return
        op = Op(0, stamp, process, type, f, value, error, node)  # type: ignore[arg-type]
        self._rows.append((stamp, len(self._rows), op))

    def run(self) -> Run:
        self.world.run(self.plan.length + _AFTER)
        rows = sorted(self._arrived(), key=lambda row: row[:2])
        ops = [
            Op(i, o.time, o.process, o.type, o.f, o.value, o.error, o.node)
            for i, (_, _, o) in enumerate(rows)
        ]
        return Run(self.plan, ops, self.plan.test(), self.truth, self.store, self.defect.struck)

    def _arrived(self) -> list[tuple[int, int, Op]]:
        """Return the events as the harness receives them: those of equal stamps in any order, but
        each node's own in order."""
        if not self.plan.grain:
            return self._rows
        random = self.world.random
        nodes = {row[2].node: random.random() for row in self._rows}
        rows = sorted(self._rows, key=lambda row: (row[0], nodes[row[2].node], row[1]))
        return [(stamp, place, op) for place, (stamp, _, op) in enumerate(rows)]

    def _crash(self) -> None:
        """Let a client die by itself, in the middle of an op; its end informs the harness."""
        for client in self._clients.values():
            if client.events.open_ops and not client.os.dead and not client.os.paused:
                client.die(0)
                self.world.after(self.world.between(12, 25), client.buried, client.os)
                return

    def _forget(self) -> None:
        if self.world.chance(0.3):
            self.service.wipe(self.plan.server_names)
        self.world.after(self.world.between(300, 1500), self._forget)


def simulate(way: str, defect: str, seed: str) -> Run:
    """Run this seed: the result is always the same."""
    plan = draw(Random(f"{seed}/plan"), way, defect)
    return Simulation(plan, seed).run()
