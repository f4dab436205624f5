"""The network: messages are late, lost and out of order, and links can be cut.

A link is cut one way at a time. A message that meets a cut is lost, or is kept and arrives after
the heal, as with TCP; or it is rejected, and its sender knows at once. Each message has its own
delay, so that messages overtake one another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulated.world import MS, World

LONGEST_MS = 120
"""The longest delay of a message on a healthy link."""


@dataclass
class Cut:
    """Ways (source, to) that are cut. `held`: the share of messages that are kept until the end."""

    ways: frozenset[tuple[str, str]]
    held: float = 0.0
    rejects: bool = False
    kept: list[tuple[str, str, Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)


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
            for source, to, arrive, given in cut.kept:
                self._carry(source, to, arrive, given)
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
        if cut is not None:
            if cut.rejects:
                return False
            self._meet(cut, source, to, arrive, given)
        elif not self._lost(source):
            self._carry(source, to, arrive, given)
        return True

    def _cut(self, source: str, to: str) -> Cut | None:
        for cut in self._cuts:
            if (source, to) in cut.ways:
                return cut
        return None

    def _meet(
        self, cut: Cut, source: str, to: str, arrive: Callable[..., None], given: tuple[Any, ...]
    ) -> None:
        if self._world.chance(cut.held):
            cut.kept.append((source, to, arrive, given))

    def _lost(self, source: str) -> bool:
        if self._noise.get(source) == "loss" and self._world.chance(0.3):
            return True
        return self._world.chance(self._loss)

    def _carry(
        self, source: str, to: str, arrive: Callable[..., None], given: tuple[Any, ...]
    ) -> None:
        at = self._world.now + self._delay(source)
        if self._ordered:
            at = self._latest[source, to] = max(at, self._latest.get((source, to), 0))
        self._world.at(at, self._arrive, source, to, arrive, given)

    def _arrive(
        self, source: str, to: str, arrive: Callable[..., None], given: tuple[Any, ...]
    ) -> None:
        cut = self._cut(source, to) if self._cuts else None
        if cut is None:
            arrive(*given)
        else:
            self._meet(cut, source, to, arrive, given)

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
