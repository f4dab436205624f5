"""The true events of a run, and the part of them that clients could see.

The run fills `Truth`, which then answers two kinds of questions. First, facts: did two clients
really hold a lock at once, was data really damaged? A checker may report them only where they are
true, and must where clients saw them. Second, whether a defect had an effect that reached clients
for certain: then only one verdict is right. These are sufficient conditions, narrow enough to leave
no doubt; a checker may find more.

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

    order: its place among all grants of the service. asked, start: stamps; began: true time.
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


# Whether a defect reached a client for certain.


def doubled(truth: Truth) -> list[tuple[Held, Held]]:
    """Return holds of which the second was granted within the first one's believed lease."""
    gap = truth.gap
    return [
        (one, other)
        for one, other in rivals(truth)
        if one.start + gap < other.start
        and one.believes(other.start + gap)
        and other.believes(other.start)
        and not one.extending(other.start, gap)
        and not _excused(truth, one, other.start)
    ]


def doubled_in_any_order(truth: Truth) -> list[tuple[Held, Held]]:
    """Return exclusive grants of which the second certainly arrived within the first one's lease.

    The second was requested after the first had arrived, and arrived before the least lease of the
    first, from its request on, can have ended.
    """
    gap = truth.gap
    found = []
    for one, other in rivals(truth):
        deadline = one.told[0][1]
        if one.shared or other.shared or deadline is None:
            continue
        least = min(one.asked + one.ttl, deadline, one.surely)
        in_order = one.start + gap < other.asked and other.start + gap < least
        if in_order and not _excused(truth, one, other.start):
            found.append((one, other))
    return found


def _excused(truth: Truth, held: Held, at: float) -> bool:
    """Return whether the service may have ended a hold early, as far as the history can show."""
    if truth.plan.silent_close:
        return True
    if truth.plan.ends_with != "connection":
        return False
    return any(
        held.node in link and fault.start <= at + truth.gap
        for fault in truth.faults
        for link in fault.links
    ) or any(
        fault.family == "meteor"
        or (fault.family == "packet" and _loses(truth, held.node, fault) and fault.start <= at)
        for fault in truth.faults
    )


def _loses(truth: Truth, node: str, fault: FaultSeen) -> bool:
    """Return whether a fault loses messages of this client, or of a server."""
    return node in fault.targets or not set(fault.targets) <= set(truth.plan.client_names)


def extended_lost(truth: Truth) -> list[tuple[Held, Held]]:
    """Return holds whose extension was answered ok after the lock had been granted to another."""
    gap = truth.gap
    return [
        (one, other)
        for one, other in rivals(truth)
        if not other.shared and not one.shared and one.start + gap < other.asked
        if any(other.start + gap < sent for sent, _ in one.extended)
    ]


def tokens_repeated(truth: Truth) -> list[tuple[Held, Held]]:
    """Return grants with equal tokens, or with a lower one for a surely later request."""
    gap = truth.gap
    found = []
    for one, other in rivals(truth):
        if one.token is None or other.token is None:
            continue
        fallen = one.start + gap < other.asked and other.token < one.token
        if fallen or one.token == other.token:
            found.append((one, other))
    return found


def stolen(truth: Truth) -> list[tuple[Held, Held]]:
    """Return (thief, victim) for each release that certainly ended another client's hold.

    It was sent after the thief's own hold had ended and the victim, which had asked after that, had
    the lock; it was answered ok, and a third client was granted the lock after it, while the
    victim's lease still ran. No earlier fault could have made the service forget it.
    """
    gap = truth.gap
    if any(_forgets(fault) for fault in truth.faults):
        return []
    found = []
    for thief, victim in rivals(truth):
        for number, (sent, answered) in enumerate(thief.released):
            over = thief.deadline(sent)
            if number:
                over = min(over, thief.released[0][1])
            if thief.how != "release" and thief.really < inf:
                over = min(over, thief.surely)
            late = over + gap < victim.asked and victim.start + gap < sent
            if not late:
                continue
            thirds = [
                third.start
                for third, other in rivals(truth)
                if other is victim and victim.believes(third.start + gap)
            ]
            # None of them before the release: otherwise the hold had ended already.
            if thirds and min(thirds) > answered + gap:
                found.append((thief, victim))
    return [pair for pair in found if not _excused(truth, pair[1], inf)]


def released_late(truth: Truth) -> bool:
    """Return whether any release was answered ok when its own hold had ended."""
    return any(
        held.deadline(sent) <= answered + truth.gap
        or held.how not in ("release", "")
        or sent != held.released[0][0]
        for held in truth.holds
        for sent, answered in held.released
    )


def _forgets(fault: FaultSeen) -> bool:
    return fault.family not in ("partition", "delay", "packet", "pause", "cpu", "disk")


def lost_updates(truth: Truth) -> list[tuple[Wrote, Any]]:
    """Return acknowledged writes with a later read or write that shows an older version."""
    gap = truth.gap
    found: list[tuple[Wrote, Any]] = []
    for write in truth.writes:
        for read in truth.reads:
            same = read.resource == write.resource and write.done + gap < read.sent
            if same and read.version < write.stored:
                found.append((write, read))
        for other in truth.writes:
            same = other.resource == write.resource and write.done + gap < other.sent
            if same and other.stored <= write.stored:
                found.append((write, other))
    return found


def refused_and_shown(truth: Truth) -> list[Read]:
    return [read for read in truth.reads if (read.resource, read.value) in truth.refusals]
