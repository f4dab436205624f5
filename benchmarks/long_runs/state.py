"""Clients, grants, locks and faults as they stand at a moment of a virtual run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fencepost.workloads.client.critical_section import CriticalSection

Answer = Callable[..., None]
"""Gives a client (client, life, type, value, error) the answer to its op."""


@dataclass(eq=False)
class Client:
    """`life` counts its processes: what was under way for an earlier one finds nobody."""

    node: str
    server: str
    process: int
    section: CriticalSection
    life: int = 0
    alive: bool = True
    wakes: int = 0
    """Until when it is paused (ns)."""
    asked: tuple[str, dict[str, Any]] | None = None
    """Its op without an answer, and with what value it was invoked."""
    grant: Grant | None = None
    grants: int = 0


@dataclass(eq=False)
class Grant:
    """A grant as the service has it."""

    client: Client
    life: int
    name: str
    lock: Lock
    token: int
    expires: int


@dataclass(eq=False)
class Lock:
    name: str
    held: Grant | None = None
    queue: deque[tuple[Client, int, bool, Answer]] = field(default_factory=deque)


class Cuts:
    """The faults that are on, by name: the values of their ops, and their families."""

    def __init__(self) -> None:
        self.on: dict[str, dict[str, Any]] = {}

    def between(self, client: Client, far: str) -> bool:
        """Whether a fault keeps this client from that node."""
        for fault in self.on.values():
            if fault["family"] in ("pause", "kill") and far in fault["targets"]:
                return True
            if [client.node, far] in fault["arguments"].get("links", ()):
                return True
        return False
