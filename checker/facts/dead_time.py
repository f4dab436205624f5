"""Dead time: when a lock that no client could have was not granted, although clients asked for it.

A lock is *taken* while a hold may last, while a request may have been granted without its client
receiving the answer, and while a fault keeps servers from answering. The rest of the run is free
time. It is dead if, without a grant, clients asked without a pause for longer than the bound; or if
one asked after the bound, with no other client asking meanwhile but such as failed, and again, and
none was granted it either time. A request counts only while no fault hinders its client. Everything
here is rounded in favour of the lock: to blame it takes certainty. Clients that ask each server by
itself may refuse one another, so requests that were open at the same time only raise a doubt there.

Shared and exclusive holds are judged apart. A grant of a shared hold helps no client that asks for
an exclusive one: it only takes the lock for a while. Such a client may ask in vain for longer than
the bound in several stretches of free time together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from fencepost.checker.facts.ends import FOREVER
from fencepost.checker.facts.hindered import Hindered
from fencepost.checker.facts.holds import seconds
from fencepost.checker.facts.obstacles import Request, Span
from fencepost.checker.facts.taken import Taken, mode_of
from fencepost.checker.history.history import Call

PAUSES_IN_BOUND = 10
"""A client asks without a pause if it waits at most a tenth of the bound between two acquires."""
TIMES_IN_VAIN = 2
"""A single failed request may be a server's hiccup."""


class DeadTime(Struct, frozen=True, gc=False):
    """A lock was free, and was not granted by `limit`, but at `until` (FOREVER: never). `why`: the
    event that had freed it, at `since`. `mode`: what clients asked for, if the lock has several."""

    lock: str
    since: float
    limit: float
    until: float
    why: str
    mode: str = ""

    def describe(self) -> str:
        late = "never was"
        if self.until < FOREVER:
            late = f"was only after {(self.until - self.since) / 1e9:.3f} s"
        mode = f", in {self.mode} mode" if self.mode else ""
        return (
            f"{self.why}: the lock should have been granted by {seconds(self.limit)}{mode}, "
            f"but {late}."
        )

    def to_json(self) -> dict[str, object]:
        never = self.until == FOREVER
        return {
            "what": self.describe(),
            "time_ns": self.since,
            "valid": False,
            "waited_s": None if never else (self.until - self.since) / 1e9,
            "lock": self.lock,
        }


class DeadTimes:
    """Finds the dead times of one lock for clients that ask in one mode. `served`: how often it was
    granted in time once it was free; `leases`: how often it was granted after a hold that no
    release had ended: its lease expired, or its holder disappeared; `doubtful`: from when on it
    would be dead if its clients cannot have refused one another; FOREVER if at no time."""

    def __init__(
        self,
        lock: str,
        asked: Sequence[tuple[Call, Request]],
        mode: str,
        hindered: Hindered,
        bound: int,
        apart: int,
        end_ns: int,
    ) -> None:
        self.served = self.leases = 0
        self.doubtful = FOREVER
        self._lock = lock
        self._mode = mode
        self._bound = bound
        self._end_ns = end_ns
        self._pause = bound / PAUSES_IN_BOUND
        mine = [row for row in asked if mode_of(row[0]) == mode]
        self._alone = len(mine) == len(asked)
        spans = (span for row in mine for span in _unhindered(row, hindered, end_ns))
        self._asked = _stretches(spans, self._pause)
        among = {row[0].begin.index for row in mine if not _met(row, hindered, end_ns)}
        vain = [group for group in _groups(asked, apart, among) if group.in_vain]
        self._vain = [group.span for group in vain]
        self._certain = self._vain
        if hindered.one_by_one:
            self._certain = [group.span for group in vain if group.alone]

    def find(self, taken: Iterable[Taken], since: float, why: str) -> Iterator[DeadTime]:
        """Yield the dead times from `since` on. `why`: what begins then."""
        at, granted, starved = since, -FOREVER, _Starved()
        free, now, unreleased = since, -FOREVER, ""
        for row in sorted(taken, key=lambda row: (row.begin, not row.granted)):
            serves = row.granted == self._mode
            if row.begin > now:  # spans that begin in one instant have no order
                free, now = since, row.begin
            if serves and now > granted:
                granted = now
                self.served += free <= now <= free + self._bound
                shared = unreleased == self._mode == "shared"
                self.leases += bool(unreleased) and at <= now and (free <= now or not shared)
            until = min(row.begin, self._end_ns)
            if until > since:
                limit = self._limit(since, until, starved)
                if limit < FOREVER:
                    yield self._dead(at, limit, row.begin if serves else FOREVER, why)
            if serves:
                starved = _Starved()
            if row.granted and row.begin >= since:
                since, at, unreleased = row.begin, row.begin, ""
            if row.over >= since:
                since, at, why = row.over, row.at, row.why
                unreleased = row.granted if row.lease else ""
        limit = self._limit(since, self._end_ns, starved)
        if limit < FOREVER:
            yield self._dead(at, limit, FOREVER, why)

    def _dead(self, at: float, limit: float, until: float, why: str) -> DeadTime:
        return DeadTime(self._lock, at, limit, until, why, "" if self._alone else self._mode)

    def _limit(self, since: float, until: float, starved: _Starved) -> float:
        """Return by when the lock should have been granted in a span of free time; FOREVER if it
        is not to blame."""
        place = max(bisect_right(self._asked, (since, FOREVER)) - 1, 0)
        while place < len(self._asked) and self._asked[place][0] < until:
            begin, over = self._asked[place]
            asked = min(over, until) - max(begin, since)
            if asked > self._bound:
                return since + self._bound
            if not self._alone and asked > self._pause:
                starved.add(place, asked - self._pause)
                if starved.asked > self._bound:
                    starved.asked = 0.0
                    return min(over, until)
            place += 1
        if _twice(self._certain, since + self._bound, until):
            return since + self._bound
        if _twice(self._vain, since + self._bound, until):
            self.doubtful = min(self.doubtful, since)
        return FOREVER


@dataclass
class _Starved:
    """How long clients asked without a pause, in free time, while the lock was only granted in
    another mode. A client asks at least once within a pause, so each free span counts without
    one."""

    asked: float = 0.0
    stretch: int = -1

    def add(self, stretch: int, asked: float) -> None:
        self.asked = asked + (self.asked if stretch == self.stretch else 0.0)
        self.stretch = stretch


def _met(row: tuple[Call, Request], hindered: Hindered, end_ns: int) -> bool:
    call, one = row
    until = min(one.asked_until, end_ns)
    return hindered.meets(call.begin.node, one.begin, until)


def _unhindered(row: tuple[Call, Request], hindered: Hindered, end_ns: int) -> Iterator[Span]:
    """Yield the parts of a request in which no fault hindered its client."""
    call, one = row
    begin, end = float(one.begin), min(one.asked_until, end_ns)
    for since, over in hindered.met(call.begin.node, begin, end):
        if since > begin:
            yield begin, since
        begin = max(begin, over)
    if begin < end:
        yield begin, end


def _stretches(spans: Iterable[Span], pause: float) -> list[Span]:
    """Return the spans in which clients asked without a pause, in order."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1] + pause:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _twice(vain: Sequence[Span], since: float, until: float) -> bool:
    """Return whether clients asked in vain often enough between two times."""
    # The spans do not touch, so they end in the order in which they begin.
    first = bisect_right(vain, (since, FOREVER))
    mine = vain[first : first + TIMES_IN_VAIN]
    return len(mine) == TIMES_IN_VAIN and mine[-1][1] <= until


def _groups(asked: Sequence[tuple[Call, Request]], apart: int, among: set[int]) -> list[_Group]:
    """Return the acquires, those together that were open at the same time. `among`: the indices of
    the invocations that count."""
    groups: list[_Group] = []
    granted_until = -FOREVER
    for call, one in asked:
        if not groups or one.begin > groups[-1].until + apart:
            # The requests before it had ended, but may have been granted.
            groups.append(_Group(one.begin, granted_until + apart < one.begin))
        waited = call.end is not None and not one.died and one.asked_until >= call.end.time
        groups[-1].add(call.type, one.open_until, waited and call.begin.index in among)
        granted_until = max(granted_until, one.over)
    return groups


@dataclass
class _Group:
    """Acquires that were open at the same time. `free`: none before them may have been granted
    without its client's knowledge, and still last."""

    begin: float
    free: bool
    until: float = -FOREVER
    ends: list[str] = field(default_factory=list)
    counts: bool = False

    def add(self, end: str, until: float, counts: bool) -> None:
        self.ends.append(end)
        self.until = max(self.until, until)
        self.counts |= counts

    @property
    def span(self) -> Span:
        return self.begin, self.until

    @property
    def alone(self) -> bool:
        return len(self.ends) == 1

    @property
    def in_vain(self) -> bool:
        """Whether clients asked in vain: no acquire was granted, and meanwhile no other client had
        a request that may have been granted without its receiving the answer."""
        failed = self.ends != ["ok"] if self.alone else set(self.ends) == {"fail"}
        return self.counts and self.free and failed
