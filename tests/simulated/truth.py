"""The true events of a run, and the part of them that clients could see.

The run fills `Truth`, which then answers what really happened: did two clients hold a lock at once,
was data damaged? A checker may report that only where it is true, and must where clients saw it.
Whether a defect had an effect that reached clients for certain is asked in reached.py.

Stamps are by the clock of their client, which is off by its `error`; two stamps have a certain
order if they differ by more than the bounds of both clocks (`gap`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from math import inf
from typing import Any

from tests.simulated.plan import Plan
from tests.simulated.resource import Store


@dataclass(eq=False)
class Held:
    """A grant that reached its client.

    order: its place among all grants of the service. again: whether its process had the lock.
    asked, start: stamps; began: true time.
    told: (stamp, deadline) at the grant, and whenever it was extended or renewed.
    extended, released: (invocation, answer) of each that was answered ok.
    ends: each time that it was given up: until when the history proves it held (a stamp), when it
    was really given up (true time), and how. The first counts.
    """

    lock: str
    name: str
    node: str
    process: int
    shared: bool
    token: int | None
    order: int
    ttl: int
    asked: int
    start: int
    began: int
    error: int
    again: bool
    told: list[tuple[int, int | None]]
    extended: list[tuple[int, int]] = field(default_factory=list)
    released: list[tuple[int, int]] = field(default_factory=list)
    ends: list[tuple[float, float, str]] = field(default_factory=list)

    def ended(self, stamp: int, how: str) -> None:
        self.ends.append((stamp, stamp - self.error, how))

    def died(self, now: int, certain: int) -> None:
        self.ends.append((certain, now, "death"))

    def goes_on(self) -> None:
        """Record that its release has failed, and that this must mean nothing."""
        if not self.released:
            self.ends = [end for end in self.ends if end[2] != "release"]

    @property
    def _end(self) -> tuple[float, float, str]:
        return min(self.ends, default=(inf, inf, ""))

    @property
    def surely(self) -> float:
        return self._end[0]

    @property
    def really(self) -> float:
        return self._end[1]

    @property
    def how(self) -> str:
        return self._end[2]

    def deadline(self, at: float) -> float:
        """Return by when its lease ends, as its client knew at a moment; `inf` for no known end."""
        known = [deadline for stamp, deadline in self.told if stamp <= at]
        return inf if not known or known[-1] is None else known[-1]

    def extending(self, at: float, gap: int) -> bool:
        """Return whether an extension was in flight, perhaps to an earlier deadline."""
        return any(sent <= at + gap and at < answered + gap for sent, answered in self.extended)

    def believes(self, at: float) -> bool:
        """Return whether its client believed at a moment, without a report to the contrary."""
        return self.start <= at < min(self.deadline(at), self.surely)


@dataclass(frozen=True)
class Wrote:
    resource: str
    value: str
    stored: int
    sent: int
    done: int
    held: Held


@dataclass(frozen=True)
class Read:
    resource: str
    value: Any
    version: int
    sent: int
    done: int
    node: str


@dataclass
class FaultSeen:
    """A fault as it was recorded: from `start` to `end`, by the harness' clock."""

    family: str
    targets: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    start: int
    end: float = inf


@dataclass
class Truth:
    plan: Plan
    holds: list[Held] = field(default_factory=list)
    writes: list[Wrote] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    refusals: set[tuple[str, str]] = field(default_factory=set)
    faults: list[FaultSeen] = field(default_factory=list)

    def read(
        self, resource: str, value: Any, version: int, sent: int, done: int, node: str
    ) -> None:
        self.reads.append(Read(resource, value, version, sent, done, node))

    def wrote(
        self, resource: str, value: str, stored: int, sent: int, done: int, held: Held
    ) -> None:
        self.writes.append(Wrote(resource, value, stored, sent, done, held))

    def refused(self, resource: str, value: str) -> None:
        self.refusals.add((resource, value))

    @property
    def gap(self) -> int:
        return 2 * self.plan.error_bound


def rivals(truth: Truth) -> Iterator[tuple[Held, Held]]:
    """Yield every two holds of one lock that exclude each other, in both orders."""
    by_lock: dict[str, list[Held]] = {}
    for held in truth.holds:
        by_lock.setdefault(held.lock, []).append(held)
    for mine in by_lock.values():
        for one, other in permutations(mine, 2):
            if one.process != other.process and not (one.shared and other.shared):
                yield one, other


# Facts that decide a verdict.


def met(truth: Truth) -> list[tuple[Held, Held]]:
    """Return two clients that really held a lock at once: the second started during the first."""
    return [(one, other) for one, other in rivals(truth) if one.began <= other.began <= one.really]


def met_surely(truth: Truth) -> list[tuple[Held, Held]]:
    """Return those of which the history leaves no doubt."""
    gap = truth.gap
    return [
        (one, other)
        for one, other in rivals(truth)
        if one.start + gap < other.start and other.start + gap < one.surely
        if not truth.plan.silent_close
    ]


@dataclass
class Damage:
    """The damage to the data: writes that were lost updates, stale, or had a falling token.

    `seen`: whether all parties to one were acknowledged.
    """

    lost: set[str] = field(default_factory=set)
    stale: set[str] = field(default_factory=set)
    lower: set[str] = field(default_factory=set)
    seen_lost: bool = False
    seen_lower: bool = False
    seen_stale: bool = False


def damage(truth: Truth, store: Store) -> Damage:
    found = Damage()
    known = {write.value for write in truth.writes}
    nameless = truth.plan.nameless  # a write that names no hold may be of any lock
    for register in store.registers.values():
        for place, write in enumerate(register.applied):
            if write.read != write.before:
                found.lost.add(write.value)
                found.seen_lost |= write.value in known
            for earlier in register.applied[:place]:
                seen = write.value in known and earlier.value in known and not nameless
                if earlier.lock != write.lock:
                    continue
                stale = earlier.hold > write.hold
                if stale:
                    found.stale.add(write.value)
                if None not in (earlier.token, write.token) and earlier.token > write.token:
                    found.lower.add(write.value)
                    found.seen_lower |= seen
                    found.seen_stale |= seen and stale
    return found
