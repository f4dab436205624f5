"""Places faults of one family one after another, each where the others leave room for it.

A fault lasts for half to twice the TTL. If each way to inject it collides with an active fault, it
is retried a little later. The entries of the stream and the kinds of its faults take turns
(turns.py). A kind that finds no room for a while keeps its turn, and others pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fencepost.nemesis.families import FAMILIES, collide
from fencepost.nemesis.family import Family, Strike
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import Drawn, Layout
from fencepost.nemesis.turns import deal, dealing

QUIET_START_S = 1.0
_TRIES = 8
_LATER_S = 1.0
_PATIENCE_S = 5.0
"""How long a fault waits for room for the kind whose turn it is. It is longer than _MARGIN_S: what
precedes it in the same stream never makes a kind lose its turn."""
# A fault takes a while to be proved and healed, and a client a while to reach its failpoint.
_MARGIN_S = 4.0
# How much rounding may take off a fault's begin.
_ROUNDED_S = 0.001


@dataclass(frozen=True)
class Way:
    """A way to inject a fault; its time is still open."""

    family: Family
    drawn: Drawn
    strike: Strike


@dataclass(frozen=True)
class Placed:
    """A way with its time, and how long it has that time to itself."""

    way: Way
    at_s: float
    duration_s: float
    until_s: float


class Stream:
    """Faults of one family, or of one entry with its own interval, one after another."""

    def __init__(
        self, rank: int, name: str, among: list[Asked], seed: int, interval_s: float
    ) -> None:
        self.rank = rank
        self._name = f"{seed}/{name}"
        self._among = among
        self._weights = [asked.weight for asked in among]
        self._apart_s = among[0].interval_s or interval_s
        self._times = Random(self._name)
        self._number = 0
        self._taken: dict[str, int] = {}
        self.at_s = QUIET_START_S + self._times.uniform(0, self._apart_s / 2)
        self._begin()

    def _begin(self) -> None:
        """Draw the next fault: its length, and a generator of the ways to inject it."""
        self._length = self._times.uniform(0.5, 2)
        name = f"{self._name}/{self._number}"
        self._dealing = dealing(name, f"{self._name}/turns", self._taken)
        self._others = dealing(f"{name}/others", f"{name}/others", {})
        self._waited_s = 0.0
        # Cached, with the time before which there is no room for each: a long run's faults are
        # retried millions of times.
        self._ways: list[list[Way]] = []
        self._takes: list[dict[str, int]] = []  # the decks after each
        self._taken_s: list[float] = []

    def next(self, time_s: float, layout: Layout, near: list[Placed]) -> list[Placed]:
        """Return the fault that is due, if there is room for it among those in `near`; a rolling
        one is several. Else none: it is due again soon."""
        length_s = self._length * layout.ttl_s
        placed = self._room(min(length_s, time_s), layout, near)
        if not placed:
            self.at_s += _LATER_S
            self._waited_s += _LATER_S
            return []
        last_s = max(one.at_s for one in placed)
        self.at_s = last_s + length_s + self._apart_s * self._times.uniform(0.3, 1.0)
        self._number += 1
        self._begin()
        return placed

    def _room(self, length_s: float, layout: Layout, near: list[Placed]) -> list[Placed]:
        """Return a way that collides with no other fault, or none. The first ways are of the kind
        whose turn it is, the others of all kinds in turn."""
        patient = self._waited_s < _PATIENCE_S
        for number in range(_TRIES if patient else 2 * _TRIES):
            if number == len(self._ways):
                self._ways.append(self._way(layout, number < _TRIES))
                self._taken_s.append(0.0)
            if self.at_s < self._taken_s[number]:
                continue
            placed = [place(way, self.at_s, length_s) for way in self._ways[number]]
            until_s = _taken_until_s(placed, near, self.at_s, layout)
            if not until_s:
                self._taken = self._takes[number]
                return placed
            self._taken_s[number] = until_s - _ROUNDED_S
        return []

    def _way(self, layout: Layout, in_turn: bool) -> list[Way]:
        self._dealing.taken = dict(self._taken)
        random = self._dealing if in_turn else self._others
        random.entry = ""
        asked = self._among[0]
        if len(self._among) > 1:
            asked = deal(random, "entry", self._among, self._weights)
        random.entry = asked.text
        found = ways(asked, random, layout)
        self._takes.append(self._dealing.taken)
        return found


def ways(asked: Asked, random: Random, layout: Layout) -> list[Way]:
    """Return one way to inject; of a rolling fault, those of all its parts."""
    family = FAMILIES[asked.family]
    return [
        Way(family, one, family.strike(one.targets, one.arguments, layout))
        for one in family.draw(random, layout, asked)
    ]


def place(way: Way, at_s: float, length_s: float) -> Placed:
    """Place a way of a fault that is due then and lasts this long, unless the way overrides it."""
    lasts_s = way.drawn.duration_s
    begin_s = round(at_s + way.drawn.after_s, 3)
    duration_s = round(length_s if lasts_s is None else lasts_s, 3)
    return Placed(way, begin_s, duration_s, begin_s + duration_s + _MARGIN_S)


def _taken_until_s(placed: list[Placed], near: list[Placed], at_s: float, layout: Layout) -> float:
    """Return 0 if no placed fault collides at `at_s`; else the time until which one does.

    A fault that begins later ends later, too: it collides until the other one has ended.
    """
    for one in placed:
        for other in near:
            if _collide(one, other, layout):
                return other.until_s - (one.at_s - at_s)
    return 0.0


def _collide(one: Placed, other: Placed, layout: Layout) -> bool:
    if other.at_s >= one.until_s or one.at_s >= other.until_s:
        return False
    return collide(one.way.strike, other.way.strike, layout)
