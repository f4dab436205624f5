"""The records of the lock service: its rules, locks, holds, queues and sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulated.world import Process

Owner = tuple[str, int]


@dataclass(frozen=True)
class Rules:
    """The behaviour of a service.

    `tokens`: none, own (each grant has one) or shared (so has each generation of shared holds).
    `unseen_ns`: how long a client is missed until its session ends. `factor`: by how much a service
    with a wrong lease multiplies each ttl.
    """

    ends_with: str
    tokens: str = "own"
    unseen_ns: int = 0
    factor: float = 1.0


@dataclass
class Holder:
    owner: Owner
    shared: bool
    token: int | None
    expires: int
    process: Process


@dataclass
class Waiter:
    owner: Owner
    shared: bool
    process: Process
    tell: Callable[[Any], None]
    wakeups: int = 0


@dataclass
class LockState:
    name: str
    token: int
    granted: bool = False
    holders: list[Holder] = field(default_factory=list)
    queue: list[Waiter] = field(default_factory=list)


@dataclass
class Socket:
    """A client's connection, as its service sees it."""

    process: Process
    closed: bool = False


@dataclass
class Session:
    """`answers`: of completed requests, so that a repeated one changes nothing."""

    name: str
    socket: Socket
    ttl: int
    expires: int
    seen: int
    ended: bool = False
    answers: dict[int, Any] = field(default_factory=dict)


def fits(state: LockState, shared: bool) -> bool:
    """Return whether a hold conflicts with none that is on."""
    return not state.holders or (shared and all(holder.shared for holder in state.holders))
