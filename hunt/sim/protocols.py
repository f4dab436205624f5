"""The part of a simulated run that faults and clients use; hunt/run.py implements it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.faults import Faults
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.record import Outbox, Row
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Node, Task, World
from fencepost.workloads.client.client import Client


class Run(Protocol):
    """A simulated run; `working` is the number of clients still at work."""

    setting: Setting
    schedule: Schedule
    world: World
    network: Network
    faults: Faults
    rows: list[Row]
    servers: list[Server]
    nodes: Mapping[str, Server]
    storage: Server
    clients: list[ClientNode]
    working: int

    def begin(self, node: Node, work: Callable[[], None]) -> Task:
        """Start a task on a node; an error in it ends the run."""

    def client(self, node: ClientNode, out: Outbox) -> Client:
        """Create the client that runs on this node."""

    def finish(self, node: ClientNode, client: Client) -> None:
        """Heal all faults, check that the lock recovers, and end the run."""

    def gone(self, node: ClientNode) -> None:
        """Continue after the kill of this client."""
