"""The state of a virtual run: clients, grants, locks and faults."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fencepost.workloads.client.critical_section import CriticalSection

Answer = Callable[..., None]
"""Answers an op (client, life, type, value, error)."""


@dataclass(eq=False)
class Client:
    """A client. `life` counts its processes: an event for an earlier one is dropped."""

    node: str
    server: str
    process: int
    section: CriticalSection
    life: int = 0
    alive: bool = True
    wakes: int = 0
    """The end of its pause (ns)."""
    asked: tuple[str, dict[str, Any]] | None = None
    """Its op without an answer, and the value of its invocation."""
    grant: Grant | None = None
    grants: int = 0


@dataclass(eq=False)
class Grant:
    """A grant in the service's view."""

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
    """The active faults by name: the values of their ops, and their families."""

    def __init__(self) -> None:
        self.on: dict[str, dict[str, Any]] = {}

    def between(self, client: Client, far: str) -> bool:
        """Return whether a fault separates this client from that node."""
        for fault in self.on.values():
            if fault["family"] in ("pause", "kill") and far in fault["targets"]:
                return True
            if [client.node, far] in fault["arguments"].get("links", ()):
                return True
        return False
