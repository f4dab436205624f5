"""Order of grants, and the number of clients that a release wakes; part of `liveness`.

Queueing locks promise both (ZooKeeper's and etcd's recipes), and both are judged from the history
alone. Which of two clients asked first is certain only if one had been waiting for a while, without
faults, when the other began: before that, either request may have reached the service first. Which
was granted first does not follow from the order in which the answers arrived.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import chain, takewhile
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import Struct

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.ends import DEAD
from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import FOREVER, Hold, lock_of, seconds
from fencepost.checker.facts.second_grants import doubled
from fencepost.checker.facts.wakeups import Entry, herd
from fencepost.checker.history.history import Call, History

SETTLED_NS = 500_000_000
"""Minimal time an acquire must have been open for the service to have queued it, and minimal time
before its end at which a client that gives up may have left the queue."""
_REQUESTS = 4
"""The time to settle is at least this multiple of the slowest uncontended op without faults: on a
busy machine a client may take seconds to connect and enter the queue. The first grants show how
long connecting takes, because they wait for no holder."""
_UNKNOWN = 10
"""A further factor for a process that was never granted a lock before, because it may still be
starting. A Java library's first acquire reached ZooKeeper after more than 0.6 s, those of the other
clients within 0.09 s. A client that is starved from its first acquire on is still detected."""


@dataclass
class Fairness:
    """The judgement. `waited`: acquires open long enough to detect an overtaking.

    `ordered`: whether any grant could have been out of order. `wakeups`: how often waiters were
    woken, None if the locks do not report it; `asked`: requests for a lock. Each request makes one
    entry in the queue, whose end wakes one waiter. `herds`: evidence of more wakeups than that.
    """

    waited: int = 0
    ordered: bool = False
    overtakings: list[dict[str, Any]] = field(default_factory=list)
    wakeups: int | None = None
    asked: int = 0
    herds: list[dict[str, Any]] = field(default_factory=list)

    @property
    def woken(self) -> bool:
        return bool(self.wakeups)

    def details(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "fifo": {"waited_long": self.waited, "overtakings": len(self.overtakings)}
        }
        if self.wakeups is not None:
            found["wakeups"] = {"in_all": self.wakeups, "acquires": self.asked}
        return found


class _Asked(Struct, frozen=True, gc=False):
    """An acquire. Its client certainly had its place in the queue from `queued` until `until`."""

    call: Call
    begin: int
    queued: int
    until: float
    hold: Hold | None

    @property
    def node(self) -> str | None:
        return self.call.begin.node

    @property
    def who(self) -> str:
        return f"{self.node or 'a client'} (process {self.call.begin.process})"


def fairness(
    calls: list[Call],
    holds: list[Hold],
    on: list[Fault],
    history: History,
    clocks: Clocks,
    given: Mapping[int, int],
    concerned: Set[str],
) -> Fairness:
    """Judge the order of grants and the wakeups. `calls` are acquires, in order of invocation;
    `given`: when holds were certainly given back, by index (obstacles.py);
    `concerned`: the servers, and the clients that ask for a lock: faults of other nodes alone
    disturb no order. Empty if the servers are not known."""
    found = Fairness(asked=len(calls))
    calm = _Calm([fault for fault in on if not _aside(fault, concerned)], history.end_ns)
    by_grant = {hold.index: hold for hold in holds}
    expired = _expired(history)
    settled = _settled_ns(history, holds, calm)
    by_lock: dict[str, list[_Asked]] = {}
    known: set[int | str] = set()
    for call in calls:
        begin, process = call.begin.time, call.begin.process
        hold = by_grant.get(call.end.index) if call.end is not None else None
        queued = begin + (settled if process in known else settled * _UNKNOWN)
        asked = _Asked(call, begin, queued, _until(call, expired), hold)
        if hold is not None:
            known.add(process)
        found.waited += min(asked.until, history.end_ns) > queued
        by_lock.setdefault(lock_of(call.begin.value), []).append(asked)
    for mine in by_lock.values():
        _Queue(mine, calm, clocks, settled).judge(found)
        apart = 2 * max(clocks.bound(one.node) for one in mine)
        _wakeups(mine, given, apart, found)
    return found


def _aside(fault: Fault, concerned: Set[str]) -> bool:
    """Return whether a fault hits none of these nodes, and is known to."""
    nodes = set(fault.targets).union(fault.impairs or (), *(fault.links or ()))
    known = fault.impairs is not None and bool(nodes) and bool(concerned)
    return known and nodes.isdisjoint(concerned)


def _settled_ns(history: History, holds: list[Hold], calm: _Calm) -> int:
    """Return how long a client certainly takes at most to enter or leave a queue."""
    answered = (
        (call.begin.time, call.end.time)
        for call in history.calls()
        if call.end is not None and call.end.type == "ok" and call.begin.f != "acquire"
    )
    slowest = 0
    for begin, end in chain(answered, _unhindered(holds)):
        if end - begin > slowest and calm.between(begin, end):
            slowest = end - begin
    return max(SETTLED_NS, _REQUESTS * slowest)


def _unhindered(holds: list[Hold]) -> Iterator[tuple[int, int]]:
    """Return the acquires (begin and grant) during which no other client held the lock. `holds` are
    in order of grant."""
    free: dict[str, float] = {}
    for hold in holds:
        since = free.get(hold.lock, -FOREVER)
        if since <= hold.asked:
            yield hold.asked, hold.start
        free[hold.lock] = max(since, hold.strict_end)


def _expired(history: History) -> dict[int | str, list[int]]:
    """Return when each process reported the loss of its place in a queue: `lost` without a hold."""
    found: dict[int | str, list[int]] = {}
    for op in history.lost():
        if op.value.get("hold") is None:
            found.setdefault(op.process, []).append(op.time)
    return found


def _until(call: Call, expired: dict[int | str, list[int]]) -> float:
    """Return until when an acquire certainly had its place in the queue. A dead client does not
    wait; one whose session ended may report it at any time later."""
    end = FOREVER if call.end is None else call.end.time
    dead = call.end is not None and call.end.error and call.end.error[0] in DEAD
    notices = expired.get(call.begin.process)
    if dead or (notices and any(call.begin.time <= time <= end for time in notices)):
        return call.begin.time
    return end


class _Queue:
    """The acquires of one lock, in order of invocation."""

    def __init__(self, asked: list[_Asked], calm: _Calm, clocks: Clocks, settled: int) -> None:
        self._asked = asked
        self._settled_ns = settled
        self._calm = calm
        self._clocks = clocks
        held = [one.hold for one in asked if one.hold is not None and not one.hold.shared]
        again = doubled(sorted((one.hold for one in asked if one.hold), key=attrgetter("index")))
        self._again = {hold.index for chained in again for hold in chained[1:]}
        self._exclusive = sorted(held, key=attrgetter("start"))
        self._starts = [hold.start for hold in self._exclusive]

    def judge(self, found: Fairness) -> None:
        """Compare each grant with all clients that were waiting when it was given. A second grant
        to the holder passes none of them."""
        for call, hold, waiting in self._grants():
            if hold.index in self._again:
                continue  # the lock was not free
            # Cheap conditions first: for most waiters it is uncertain which came first.
            if not self._calm.between(call.begin, hold.start):
                continue
            earlier = self._earlier(call, waiting)
            found.ordered = found.ordered or any(
                self._orders(call, hold, other) for other in chain(earlier, _later(call, waiting))
            )
            for other in earlier:
                if self._settled(other, call) and self._overtakes(call, hold, other):
                    found.overtakings.append(_overtaking(call, hold, other))
                    break

    def _earlier(self, call: _Asked, waiting: dict[int, _Asked]) -> list[_Asked]:
        """Return the clients that may have been in the queue when this one asked."""
        before = takewhile(
            lambda other: other.begin + self._settled_ns <= call.begin, waiting.values()
        )
        return [other for other in before if other.queued <= call.begin]

    def _grants(self) -> Iterator[tuple[_Asked, Hold, dict[int, _Asked]]]:
        """Yield each granted acquire in order of grant, and the others that were open then."""
        begun = [(one.call.begin.index, one) for one in self._asked]
        ended = [(one.call.end.index, one) for one in self._asked if one.call.end is not None]
        begun.sort(key=itemgetter(0))
        ended.sort(key=itemgetter(0))
        waiting: dict[int, _Asked] = {}
        place = 0
        for over, call in ended:
            while place < len(begun) and begun[place][0] < over:
                waiting[begun[place][0]] = begun[place][1]
                place += 1
            del waiting[call.call.begin.index]
            if call.hold is not None:
                yield call, call.hold, waiting

    def _settled(self, first: _Asked, second: _Asked) -> bool:
        """Return whether the one was in the queue when the other asked."""
        gap = self._clocks.between(first.node, second.node)
        return first.queued + gap <= second.begin

    def _orders(self, call: _Asked, hold: Hold, other: _Asked) -> bool:
        """Return whether it is certain, for a client still waiting, which of the two came first."""
        first, second = (call, other) if call.begin < other.begin else (other, call)
        return (
            not (hold.shared and other.hold is not None and other.hold.shared)
            and self._settled(first, second)
            and hold.start < other.until
            and self._calm.between(first.begin, hold.start)
        )

    def _overtakes(self, call: _Asked, hold: Hold, other: _Asked) -> bool:
        """Return whether `call`, which asked later, was certainly granted while `other` waited
        without faults.

        A client that gives up leaves the queue some time before its acquire ends. Once a fault is
        active, it may also have been granted the lock without receiving the answer.
        """
        gap = self._clocks.between(call.node, other.node)
        leaves = 0 if other.hold else self._settled_ns
        if hold.start + gap + leaves >= other.until:
            return False
        if not self._calm.between(other.begin, hold.start + leaves):
            return False
        if other.hold is None:
            return True
        if hold.shared and other.hold.shared:
            return self._separated(hold, other.hold)
        return self._before(hold, other.hold)

    def _before(self, first: Hold, second: Hold) -> bool:
        """Return whether the service certainly granted one before the other: their tokens say so,
        or the one had ended when the other's grant arrived. The other's lease cannot have been
        earlier, because it would have run when the one was granted, and nothing may have ended it
        by then."""
        if None not in (first.token, second.token) and first.token != second.token:
            return bool(first.token < second.token)  # type: ignore[operator]
        gap = self._clocks.between(first.node, second.node)
        over = first.believed_end + gap <= second.start
        return over and first.start + gap < min(second.leases[0][1], second.may_end)

    def _separated(self, first: Hold, second: Hold) -> bool:
        """Return whether an exclusive hold lay between two shared ones."""
        for place in range(bisect_left(self._starts, first.start), len(self._exclusive)):
            hold = self._exclusive[place]
            if hold.start > second.start:
                return False
            if self._before(first, hold) and self._before(hold, second):
                return True
        return False


def _later(call: _Asked, waiting: dict[int, _Asked]) -> Iterator[_Asked]:
    """Return the clients that may have asked when this one was in the queue."""
    return takewhile(lambda other: call.queued <= other.begin, reversed(waiting.values()))


def _overtaking(call: _Asked, hold: Hold, other: _Asked) -> dict[str, Any]:
    return {
        "what": f"{call.who} asked at {seconds(call.begin)} and was granted the lock at "
        f"{seconds(hold.start)}, before {other.who}, which had been waiting since "
        f"{seconds(other.begin)}.",
        "time_ns": hold.start,
        "valid": False,
        "ops": [call.call.begin.index, other.call.begin.index],
    }


def _wakeups(asked: list[_Asked], given: Mapping[int, int], apart: int, found: Fairness) -> None:
    """Judge the wakeups of one lock. `given`: when holds were certainly given back, by index."""
    entries = [_entry(one, given) for one in asked]
    if any(one.hold is not None and one.call.get("wakeups") is not None for one in asked):
        found.wakeups = sum(one.wakeups for one in entries) + (found.wakeups or 0)
        worst = herd(entries, apart)
        found.herds += [] if worst is None else [worst]


def _entry(one: _Asked, given: Mapping[int, int]) -> Entry:
    if one.hold is not None:
        over = given.get(one.hold.index, FOREVER)
        return Entry(one.begin, over, one.hold.start, int(one.call.get("wakeups") or 0))
    end = one.call.end
    return Entry(one.begin, FOREVER if end is None or end.type == "info" else end.time)


class _Calm:
    """Whether a fault was active between two times, or had ended more recently than it had lasted.

    TCP and client libraries double their retry interval after each attempt, so an outage may delay
    the next attempt by as long as it lasted.
    """

    def __init__(self, on: list[Fault], end_ns: int) -> None:
        whole = [(f.start, f.end if f.end is not None else end_ns) for f in on]
        spans = sorted((start, end + (end - start)) for start, end in whole)
        self._starts = [start for start, _ in spans]
        self._ends: list[int] = []
        for _, end in spans:
            self._ends.append(max(end, self._ends[-1] if self._ends else end))

    def between(self, start: int, end: int) -> bool:
        place = bisect_left(self._starts, end)
        return place == 0 or self._ends[place - 1] < start
