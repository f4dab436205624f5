"""How a family's faults are aimed at a hold (`--aim`, trigger_draws.py).

Each part is a function of a family or a fact about it, in `Family.aim`. A family that names none is
drawn during a hold as at any other time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fencepost.nemesis.failpoints import ALL_FAILPOINTS
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import HOLDER, Drawn, Layout

HOLDERS = 0.85
"""How often a pause or a kill of clients hits the holder. Else it hits any of them, so that those
that wait for the lock have their turn."""
OFTEN = {"between-check-and-delete": 2, "between-requests": 2, "before-acquire": 0}
"""Weights of failpoints at which to stop a client. One is mostly between two requests, where a
check may be out of date. A client that is stopped before an acquire holds no lock yet."""

Lengths = Sequence[tuple[float, float]]
"""Ranges of lengths of a fault, in leases. One of them is drawn, and then a length in it."""
SHORT, PAST = (0.2, 0.8), (1.0, 1.5)
USUAL = (0.5, 2.0)
"""The lengths, in leases, of a fault during a hold: some leases outlive it, and others do not."""


class Points:
    """The failpoints of an entry's triggers, in a new order each cycle, so that a short run meets
    all of them. Only a trigger that waits for a failpoint takes a turn."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._left: list[str] = []

    def next(self, points: Sequence[str], often: Mapping[str, int]) -> str:
        """Return the next of these failpoints. A point of weight 2 has two turns of a cycle."""
        self._left = [point for point in self._left if point in points]
        if not self._left:
            turns = [point for point in points for _ in range(often.get(point, 1))] or [*points]
            self._left = self._random.sample(turns, len(turns))
        return self._left.pop()


@dataclass(frozen=True)
class Aimed:
    """A fault during a hold. `lasts_s`: its maximal duration; with `until_grant` it ends when
    another client is granted the lock."""

    targets: list[str]
    arguments: dict[str, Any]
    lasts_s: float
    until_grant: bool = False


def past_its_lease_s(random: Random, at: Layout) -> float:
    """Return how long to stop a client so that others hold the lock when it resumes."""
    return round(random.uniform(1.3, 2.2) * at.ttl_s, 3)


def until_s(at: Layout) -> float:
    """Return how long a pause waits for another's grant: so long that a lock which is kept for as
    long as its holder lives shows it."""
    return 2 * at.ttl_s + max(2 * at.ttl_s, at.bound_s + 1)


def named_point(asked: Asked) -> str:
    """Return the failpoint that an entry names, for clients; "" if it names none."""
    of_client = asked.target in ("", "client", HOLDER)
    return asked.variant if of_client and asked.variant in ALL_FAILPOINTS else ""


def any_client(asked: Asked) -> bool:
    """Return whether an entry leaves it open which client a fault hits, and how."""
    return asked.target in ("", "client", "clients") and not asked.variant


def at_named_point(
    random: Random, at: Layout, asked: Asked, length_s: float, points: Points
) -> Aimed | None:
    """Return a fault at the failpoint that the entry names, if it names one."""
    point = named_point(asked)
    return Aimed([HOLDER], {"point": point}, past_its_lease_s(random, at)) if point else None


def _as_drawn(random: Random, at: Layout, asked: Asked, server: str) -> Drawn | None:
    return None


def _as_long_as_others(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Lengths]:
    return {}, (SHORT, PAST)


def _targets_servers(targets: Sequence[str], arguments: Mapping[str, Any], at: Layout) -> bool:
    return set(targets) <= set(at.servers)


@dataclass(frozen=True)
class Aiming:
    """How faults of a family are aimed.

    - `draw`: a fault during a hold, from the random source, the layout, the entry, its usual length
      (s) and the failpoints in turn; None: drawn as without a hold.
    - `until_grant`: the arguments with which a fault of a client lasts until another client is
      granted the lock; empty if there are none.
    - `request`: for a fault that meets a request of the holder, given its arguments: those to
      change, and its possible lengths.
    - `forget`: a fault by which this server may end a grant early; None: drawn as ever.
    - `cut`: the arguments of a fault that separates these pairs of nodes. Families that have it
      split clients into groups.
    - `servers_alone`: whether a fault hits servers, and nothing else.
    """

    draw: Callable[[Random, Layout, Asked, float, Points], Aimed | None] = at_named_point
    until_grant: dict[str, Any] = field(default_factory=dict)
    request: Callable[[Mapping[str, Any]], tuple[dict[str, Any], Lengths]] = _as_long_as_others
    forget: Callable[[Random, Layout, Asked, str], Drawn | None] = _as_drawn
    cut: Callable[[list[list[str]]], dict[str, Any]] | None = None
    servers_alone: Callable[[Sequence[str], Mapping[str, Any], Layout], bool] = _targets_servers
