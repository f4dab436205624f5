"""Dead time: when a lock that no client could have was not granted, although clients asked for it.

A lock is *taken* while a hold may last, while a request may have been granted without its client
receiving the answer, and while a fault keeps servers from answering. The rest of the run is free
time. It is dead if, without a grant, clients asked without a pause for longer than the bound; or if
one asked after the bound, with no other client asking meanwhile, and again, and was not granted it
either time. A request counts only while no fault hinders its client. Everything here is rounded in
favour of the lock: to blame it takes certainty.

Shared and exclusive holds are judged apart. A grant of a shared hold helps no client that asks for
an exclusive one: it only takes the lock for a while. Such a client may ask in vain for longer than
the bound in several stretches of free time together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from fencepost.checker.facts.ends import FOREVER
from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import Hold, seconds
from fencepost.checker.facts.obstacles import Request, Span, kills_clients
from fencepost.checker.facts.spans import Spans
from fencepost.checker.history.history import Call

PAUSES_IN_BOUND = 10
"""A client asks without a pause if it waits at most a tenth of the bound between two acquires."""
TIMES_IN_VAIN = 2
"""A single failed request may be a server's hiccup."""


class Taken(Struct, frozen=True, gc=False):
    """A span [begin, over) in which the lock may be taken. `why`: the event that ended it, at `at`,
    as the start of a sentence. `granted`: the mode of the hold with whose grant it begins; else
    ""."""

    begin: float
    over: float
    at: float
    why: str
    granted: str = ""


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


class Hindered:
    """The spans in which faults keep servers from answering, or hinder single clients.

    A fault that only concerns clients hinders those. Any other is in the way of everybody: one of a
    server, or one whose effects are unknown. If the lock promises to survive the failure of a
    minority (`minority`), a fault of servers during which a majority of them is always left is in
    the way for a lease after its begin and after its end only.
    """

    def __init__(
        self, on: Iterable[Fault], clients: frozenset[str], servers: frozenset[str], minority: bool
    ) -> None:
        on = list(on)
        self.servers: list[Fault] = []
        self._last = max((fault.end for fault in on if fault.end is not None), default=None)
        mine: dict[str, list[Span]] = {}
        for fault in on:
            if kills_clients(fault, clients):
                continue  # it is over at once, and dead clients ask for nothing
            nodes = fault.impairs or frozenset(fault.targets)
            if fault.impairs is None or (nodes & servers if servers else nodes - clients):
                self.servers.append(fault)
                continue
            over = FOREVER if fault.end is None else fault.end
            for node in fault.impairs:
                mine.setdefault(node, []).append((fault.start, over))
        self._survived = self._minorities(servers) if minority and servers else frozenset()
        self._clients = {
            node: Spans((begin, over, (begin, over)) for begin, over in spans)
            for node, spans in mine.items()
        }

    def met(self, node: str | None, begin: float, over: float) -> list[Span]:
        """Return the spans in which this client is hindered that touch [begin, over], in order."""
        spans = self._clients.get(node or "")
        return [] if spans is None else spans.touching(begin, over)

    def taken(self, lease: Mapping[str, int]) -> Iterator[Taken]:
        """Yield the spans in which servers may not answer. `lease`: how long after each fault
        leases that it prolonged may run, by its name."""
        for fault in self.servers:
            over = _over(fault, lease[fault.name])
            at = FOREVER if fault.end is None else fault.end
            last = fault.end == self._last
            why = "After the last fault was healed" if last else f"After the end of: {fault.what}"
            if fault.name not in self._survived:
                yield Taken(fault.start, over, at, why)
                continue
            down = ", ".join(sorted(fault.impairs or fault.targets))
            since = f"With {down} impaired from {seconds(fault.start)}"
            yield Taken(fault.start, fault.start + lease[fault.name], fault.start, since)
            if fault.end is not None:
                yield Taken(fault.end, over, at, why)

    def _minorities(self, servers: frozenset[str]) -> frozenset[str]:
        """Return the names of the faults during which a majority of the servers was always left."""
        marks: list[tuple[float, int, int, Fault]] = []
        for fault in self.servers:
            over = FOREVER if fault.end is None else fault.end
            # What ends at a moment is over before the next begins, unless it began then as well.
            marks.append((fault.start, 1, 1, fault))
            marks.append((over, 2 if over == fault.start else 0, -1, fault))
        marks.sort(key=lambda mark: mark[:2])
        away = Counter[str]()
        active: dict[str, Fault] = {}
        lost: set[str] = set()
        for _, _, step, fault in marks:
            away.update(dict.fromkeys((fault.impairs or frozenset(fault.targets)) & servers, step))
            if step > 0:
                active[fault.name] = fault
            else:
                active.pop(fault.name)
            unknown = any(one.impairs is None for one in active.values())
            if unknown or 2 * sum(many > 0 for many in away.values()) >= len(servers):
                lost |= active.keys()
        return frozenset(fault.name for fault in self.servers) - lost


def _over(fault: Fault, lease: int) -> float:
    """Return when a fault and the leases that it prolonged are over. A clock that was wrong may
    have prolonged them by as much."""
    if fault.end is None:
        return FOREVER
    return fault.end + lease + _wrong(fault.arguments, fault.end - fault.start)


def _wrong(arguments: Mapping[str, object], lasted: int) -> float:
    offset, rate = arguments.get("offset_s"), arguments.get("rate")
    wrong = abs(offset) * 1e9 if isinstance(offset, int | float) else 0.0
    return wrong + (abs(rate - 1) * lasted if isinstance(rate, int | float) else 0.0)


def prolonged(
    faults: Iterable[Fault], leases: Iterable[tuple[float, float, int]]
) -> dict[str, int]:
    """Return, by the name of each fault, the longest lease that it may have prolonged: of the
    requests and holds (begin, over, ttl) that it met."""
    rows = sorted(leases)
    begins = [begin for begin, _, _ in rows]
    found: dict[str, int] = {}
    active: list[tuple[int, float]] = []  # the longest lease first
    place = 0
    for fault in sorted(faults, key=lambda fault: fault.start):
        while place < len(rows) and rows[place][0] <= fault.start:
            heappush(active, (-rows[place][2], rows[place][1]))
            place += 1
        while active and active[0][1] < fault.start:
            heappop(active)
        until = FOREVER if fault.end is None else fault.end
        later = range(place, bisect_right(begins, until))
        met = max((rows[at][2] for at in later), default=0)
        found[fault.name] = max(met, -active[0][0] if active else 0)
    return found


def taken(
    found: Iterable[Hold],
    left: Mapping[int, float],
    asked: Iterable[tuple[Call, Request]],
    hindered: Hindered,
    lease: int,
    end_ns: int,
) -> Iterator[Taken]:
    """Yield the spans in which clients may have a lock: its holds, and requests that may have been
    granted unheard. `left` is when each hold has certainly ended; `lease` the longest of this lock;
    the history ends at `end_ns`."""
    for hold in found:
        over = left[hold.index]
        if hold.furthest == FOREVER and over < FOREVER:
            # Without a lease, servers may learn of the end of a client only after a fault.
            met = hindered.met(hold.node, hold.start, over)
            over = max([over, *(span[1] + lease for span in met)])
        yield Taken(hold.start, over, *_given_up(hold, over), _mode(hold.shared))
    for call, one in asked:
        over = one.over
        answered = FOREVER if call.end is None and not one.died else one.asked_until
        if hindered.met(call.begin.node, one.begin, min(answered, end_ns)):
            over = max(over, answered)
        if over > one.begin:
            who = f"{call.begin.node or 'a client'} (process {call.begin.process})"
            why = f"After a request of {who} that may have been granted"
            yield Taken(one.begin, over, over, why)


def _given_up(hold: Hold, over: float) -> tuple[float, str]:
    """Return the event that ended a hold: when, and in words."""
    if hold.ended_by == "release" and over < hold.deadline:
        return over, f"After {hold.who} released hold {hold.name} at {seconds(over)}"
    if hold.ended_by in ("death", "gone", "close") and hold.strict_end < hold.deadline:
        when = seconds(hold.strict_end)
        return hold.strict_end, f"After {hold.who} disappeared with hold {hold.name} at {when}"
    return over, f"After the lease of {hold.who} expired, of hold {hold.name} at {seconds(over)}"


class DeadTimes:
    """Finds the dead times of one lock for clients that ask in one mode. `served`: how often it was
    granted in time once it was free."""

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
        self.served = 0
        self._lock = lock
        self._mode = mode
        self._bound = bound
        self._end_ns = end_ns
        self._pause = bound / PAUSES_IN_BOUND
        mine = [row for row in asked if mode_of(row[0]) == mode]
        self._alone = len(mine) == len(asked)
        spans = (span for row in mine for span in _unhindered(row, hindered, end_ns))
        self._asked = _stretches(spans, self._pause)
        self._vain = _in_vain(
            asked,
            apart,
            {row[0].begin.index for row in mine if not _met(row, hindered, end_ns)},
        )

    def find(self, taken: Iterable[Taken], since: float, why: str) -> Iterator[DeadTime]:
        """Yield the dead times from `since` on. `why`: what begins then."""
        at, granted, starved = since, -FOREVER, _Starved()
        for row in sorted(taken, key=lambda row: (row.begin, not row.granted)):
            serves = row.granted == self._mode
            if serves and row.begin > granted:
                granted = row.begin
                self.served += since <= granted <= since + self._bound
            until = min(row.begin, self._end_ns)
            if until > since:
                limit = self._limit(since, until, starved)
                if limit < FOREVER:
                    yield self._dead(at, limit, row.begin if serves else FOREVER, why)
            if serves:
                starved = _Starved()
            if row.granted and row.begin > since:
                since = at = row.begin
            if row.over >= since:
                since, at, why = row.over, row.at, row.why
        limit = self._limit(since, self._end_ns, starved)
        if limit < FOREVER:
            yield self._dead(at, limit, FOREVER, why)

    def _dead(self, at: float, limit: float, until: float, why: str) -> DeadTime:
        return DeadTime(self._lock, at, limit, until, why, "" if self._alone else self._mode)

    def _limit(self, since: float, until: float, starved: _Starved) -> float:
        """Return by when the lock should have been granted in a span of free time; FOREVER if it
        is not to blame."""
        if self._alone and until - since <= self._bound:
            return FOREVER
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
        # No other client asked during these, so they end in the order in which they begin.
        first = bisect_right(self._vain, (since + self._bound, FOREVER))
        vain = self._vain[first : first + TIMES_IN_VAIN]
        blamed = len(vain) == TIMES_IN_VAIN and vain[-1][1] <= until
        return since + self._bound if blamed else FOREVER


class _Starved:
    """How long clients asked without a pause, in free time, while the lock was only granted in
    another mode. A client asks at least once within a pause, so each free span counts without
    one."""

    def __init__(self) -> None:
        self.asked = 0.0
        self._stretch = -1

    def add(self, stretch: int, asked: float) -> None:
        self.asked = asked + (self.asked if stretch == self._stretch else 0.0)
        self._stretch = stretch


def mode_of(call: Call) -> str:
    """Return the mode in which a client asks for a lock."""
    return _mode(call.begin.value.get("mode") == "shared")


def _mode(shared: bool) -> str:
    return "shared" if shared else "exclusive"


def _met(row: tuple[Call, Request], hindered: Hindered, end_ns: int) -> bool:
    call, one = row
    until = min(one.asked_until, end_ns)
    return bool(hindered.met(call.begin.node, one.begin, until))


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


def _in_vain(asked: Sequence[tuple[Call, Request]], apart: int, among: set[int]) -> list[Span]:
    """Return the acquires that were not granted although no other client asked meanwhile, or had a
    request that may have been granted without its receiving the answer.

    `among`: the positions of the invocations that count.
    """
    found: list[Span] = []
    stood = -FOREVER
    begins = [one.begin for _, one in asked]
    for (call, one), following in zip(asked, [*begins[1:], FOREVER], strict=True):
        until = one.asked_until if one.died else FOREVER
        if call.end is not None:
            until = call.end.time
        by_itself = stood + apart < one.begin and until + apart < following
        counts = call.begin.index in among and not one.died and call.type != "ok"
        if by_itself and counts and call.end is not None and one.asked_until >= until:
            found.append((one.begin, until))
        stood = max(stood, until, one.over)
    return found
