"""What faults see of a simulated run. hunt/run.py fits it; nothing here imports that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.faults import Faults
from fencepost.hunt.sim.network import Network, Request, Server
from fencepost.hunt.sim.record import Outbox, Row
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import World
from fencepost.workloads.client.client import Client


class Run(Protocol):
    """`working`: how many clients have not done their work yet."""

    setting: Setting
    world: World
    network: Network
    faults: Faults
    rows: list[Row]
    servers: list[Server]
    storage: Server
    clients: list[ClientNode]
    working: int

    def thread(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return the work of a thread whose error ends the run."""

    def client(self, node: ClientNode, out: Outbox) -> Client:
        """Make the client that runs on this node."""

    def finish(self, node: ClientNode, client: Client) -> None:
        """Heal all faults, see whether the lock comes back, and end the run."""

    def ends(self, request: Request) -> tuple[str, str]:
        """The sender and the receiver of each message that is under way now."""

    def told(self, request: Request) -> str:
        """What is under way now, as a sentence has it."""
