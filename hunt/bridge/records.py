"""The events of a simulated run that are reproduced on real servers, as plain records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fencepost.hunt.bridge.trace import Call
from fencepost.workloads.client.steps import Step

LOST, LATE = "lost", "late"
REQUEST, REPLY, REPLICATION = "request", "reply", "replication"


@dataclass(eq=False)
class Injected:
    """A fault of the run, by its name there, and when it ended, if it did."""

    name: str
    family: str
    targets: tuple[str, ...]
    arguments: dict[str, Any]
    links: frozenset[tuple[str, str]]
    start_ns: int
    words: str


@dataclass(frozen=True)
class Hit:
    """A fault on a message: its request or reply was lost or late, or its write was not replicated.

    `waits`: the client kept waiting for it. `between`: the nodes that could not reach each other.
    """

    fault: str
    which: str
    how: str
    words: str
    between: tuple[str, str]
    waits: bool = False


@dataclass(eq=False)
class Op:
    """An op of a client.

    `type`: how it ended; "" if it did not. `tries_again`: it slept between requests. `sent`: each
    message that it sent, with its node.
    """

    client: str
    f: str
    type: str = ""
    tries_again: bool = False
    sent: set[tuple[Any, ...]] = field(default_factory=set)

    def note_sent(self, step: Step) -> bool:
        """Note that it sends this; return whether it is the first time."""
        new = (step.node, step.command) not in self.sent
        self.sent.add((step.node, step.command))
        return new


@dataclass(eq=False)
class Event:
    """An event of a run.

    `what`: `begin` and `end` of an op, `send` of a request (`call`, `hit`), `arrive` of a late one;
    `inject` and `heal` of a fault. For a fault on a client, `number` is the step of its op before
    which the fault comes; 0 if the client is in no op, or waits for its servers on a connection
    that its lock opened.
    """

    what: str
    time_ns: int
    place: float
    client: str = ""
    op: Op | None = None
    call: Call | None = None
    hit: Hit | None = None
    fault: Injected | None = None
    number: int = 0
    nodes: frozenset[str] = frozenset()
    links: frozenset[tuple[str, str]] = frozenset()
