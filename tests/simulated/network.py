"""The network: messages are late, lost and out of order, and links can be cut.

A link is cut one way at a time. A message that meets a cut is lost, or is kept and arrives after
the heal, as with TCP; or it is rejected, and its sender knows at once. TCP doubles the time between
its attempts, so that a kept message may arrive as much later than the heal as it was under way.
Each message has its own delay, so that messages overtake one another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulated.world import MS, World

LONGEST_MS = 120
"""The longest delay of a message on a healthy link."""


@dataclass(frozen=True)
class _Message:
    source: str
    to: str
    sent: int
    arrive: Callable[..., None]
    given: tuple[Any, ...]


@dataclass
class Cut:
    """Ways (source, to) that are cut. `held`: the share of messages that are kept until the end."""

    ways: frozenset[tuple[str, str]]
    held: float = 0.0
    rejects: bool = False
    kept: list[_Message] = field(default_factory=list)


class Network:
    """`loss`: the share of messages that are lost on healthy links; `ordered`: whether the messages
    of a link arrive in the order in which they were sent, as on one connection."""

    def __init__(self, world: World, loss: float = 0.0, ordered: bool = False) -> None:
        self._world = world
        self._loss = loss
        self._ordered = ordered
        self._latest: dict[tuple[str, str], int] = {}
        self._cuts: list[Cut] = []
        self._noise: dict[str, str] = {}

    def cut(self, cut: Cut) -> None:
        self._cuts.append(cut)

    def heal(self, cut: Cut) -> None:
        if cut in self._cuts:
            self._cuts.remove(cut)
            for message in cut.kept:
                late = self._world.chance(0.5)
                under_way = self._world.now - message.sent if late else 0
                self._carry(message, self._world.random.uniform(0, under_way))
            cut.kept.clear()

    def disturb(self, node: str, kind: str) -> None:
        """Delay, lose or reorder a node's messages."""
        self._noise[node] = kind

    def calm(self, node: str) -> None:
        self._noise.pop(node, None)

    def open(self, source: str, to: str) -> bool:
        return self._cut(source, to) is None

    def send(self, source: str, to: str, arrive: Callable[..., None], *given: Any) -> bool:
        """Return whether it was sent; False only if the sender learns that it certainly was not."""
        cut = self._cut(source, to) if self._cuts else None
        message = _Message(source, to, self._world.now, arrive, given)
        if cut is not None:
            if cut.rejects:
                return False
            self._meet(cut, message)
        elif not self._lost(source):
            self._carry(message)
        return True

    def _cut(self, source: str, to: str) -> Cut | None:
        for cut in self._cuts:
            if (source, to) in cut.ways:
                return cut
        return None

    def _meet(self, cut: Cut, message: _Message) -> None:
        if self._world.chance(cut.held):
            cut.kept.append(message)

    def _lost(self, source: str) -> bool:
        if self._noise.get(source) == "loss" and self._world.chance(0.3):
            return True
        return self._world.chance(self._loss)

    def _carry(self, message: _Message, later: float = 0) -> None:
        link = message.source, message.to
        at = self._world.now + int(later) + self._delay(message.source)
        if self._ordered:
            at = self._latest[link] = max(at, self._latest.get(link, 0))
        self._world.at(at, self._arrive, message)

    def _arrive(self, message: _Message) -> None:
        cut = self._cut(message.source, message.to) if self._cuts else None
        if cut is None:
            message.arrive(*message.given)
        else:
            self._meet(cut, message)

    def _delay(self, source: str) -> int:
        random = self._world.random
        drawn = random.random()
        if drawn < 0.8:
            delay = random.uniform(0.1, 2)
        elif drawn < 0.97:
            delay = random.uniform(2, 25)
        else:
            delay = random.uniform(25, LONGEST_MS)
        if self._noise.get(source) in ("delay", "reorder"):
            delay += random.uniform(0, 300)
        return int(delay * MS)
