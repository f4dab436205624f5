"""Holds: each grant of a lock to one process, and when it ended.

Two meanings are kept apart, because the debate turns on them. *Strictly* a hold lasts until its
holder gives it up: the invocation of its release, `lost`, its client's `close`, or the end of its
process. As *believed* it lasts no longer than its lease. ends.py says when each end may have been.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.checker.clocks import Clocks
from fencepost.checker.ends import FOREVER, Departures, End, ends_with, first
from fencepost.checker.history import LOCK_OPS, SPONTANEOUS, Call, History, Op

__all__ = ["FOREVER", "Hold", "Overlap", "believed", "holds", "overlaps", "seconds", "strictly"]


@dataclass(frozen=True, slots=True)
class Hold:
    """One grant. Times in ns since the test's start; an end of `FOREVER` was never seen.

    asked, start: the acquire's invocation and its answer.
    strict_end, gone_by: until when the holder certainly held on, and by when it had let go.
    may_end: from when on the service may have ended the grant early; FOREVER where only a
        release or time can.
    leases: [from, until) each; more than one where an extension came after the lease was over.
    furthest: until when the last lease may run on, if no extend of unknown outcome shortened it.
    renewals: (time, deadline) of each renewal in the background, in order of time.
    extends: the positions in the history of its extends that were answered ok.
    ended_by: see ends.End.
    asked_index, index: the positions of the acquire's invocation and answer in the history.
    """

    lock: str
    name: str
    process: int | str
    node: str | None
    token: int | None
    ttl: int | None
    asked: int
    start: int
    strict_end: float
    leases: tuple[tuple[int, float], ...]
    ended_by: str
    index: int
    asked_index: int = -1
    shared: bool = False
    gone_by: float = FOREVER
    may_end: float = FOREVER
    renewals: tuple[tuple[int, float], ...] = ()
    extends: tuple[int, ...] = ()
    furthest: float = FOREVER

    @property
    def deadline(self) -> float:
        """When the last lease runs out; FOREVER for a lock whose lease the client cannot see."""
        return self.leases[-1][1]

    @property
    def believed(self) -> list[tuple[int, float]]:
        """When the holder believed, rightly as far as the service promised: each lease
        [from, until), cut off at the strict end and at `may_end`.

        A lease that was over before its grant arrived was never believed; one that was given up
        in the same instant (stamps may be coarse) was, for that instant.
        """
        over = min(self.strict_end, self.may_end)
        return [
            (start, min(end, over)) for start, end in self.leases if start < end and start <= over
        ]

    @property
    def believed_end(self) -> float:
        return self.believed[-1][1] if self.believed else self.start

    @property
    def who(self) -> str:
        return f"{self.node or 'a client'} (process {self.process})"


def seconds(time_ns: float) -> str:
    """A time for people: '12.345 s'."""
    return "the end of the run" if time_ns == FOREVER else f"{time_ns / 1e9:.3f} s"


def holds(history: History, test: Mapping[str, Any] | None = None) -> list[Hold]:
    """Every hold in the history, in order of grant.

    What a release that failed did is the test's `failed_release`: "ended" (the default: the
    hold was over, by it or before it) or "nothing" (the hold goes on).
    """
    keeps_on, ends, servers = facts(test)

    def found() -> list[Hold]:
        told = _Told(history, keeps_on)
        departures = Departures(history, ends, servers)
        grants = [_hold(call, told, departures) for call in told.grants]
        return sorted(grants, key=lambda hold: (hold.start, hold.index))

    return history.once(("holds", keeps_on, ends, servers), found)


def facts(test: Mapping[str, Any] | None) -> tuple[bool, str, frozenset[str]]:
    """What a history's holds depend on beside it: whether a hold goes on after a release that
    failed, how it may end early, and the servers."""
    told = test or {}
    keeps_on = told.get("failed_release", "ended") == "nothing"
    return keeps_on, ends_with(test), frozenset(told.get("servers") or ())


def _hold(call: Call, told: _Told, departures: Departures) -> Hold:
    assert call.end is not None
    value, grant = call.value, call.end
    gone, given_up = departures.of(grant), told.given_up(grant.index)
    end = first([*given_up, gone])
    lost = min((end.earliest for end in given_up if end.by == "lost"), default=FOREVER)
    longer = told.longer.get(grant.index, ())
    # A history of Jepsen's own names no holds: the grant's position then serves as its name.
    name = value.get("hold")
    return Hold(
        lock=lock_of(value),
        name=str(name if name is not None else grant.index),
        process=call.begin.process,
        node=call.begin.node,
        token=value.get("token"),
        ttl=value.get("ttl"),
        asked=call.begin.time,
        start=grant.time,
        strict_end=end.earliest,
        leases=_leases(grant, longer),
        ended_by=end.by,
        index=grant.index,
        asked_index=call.begin.index,
        shared=value.get("mode") == "shared",
        gone_by=end.latest,
        may_end=departures.service_may_end(call.begin, gone, lost),
        renewals=tuple(
            (op.time, float(op.value["deadline"]))
            for op in longer
            if op.f == "renewed" and op.value.get("deadline") is not None
        ),
        extends=tuple(op.index for op in longer if op.f == "extend" and op.type == "ok"),
        furthest=_leases(grant, told.certain(grant.index))[-1][1],
    )


def lock_of(value: Mapping[str, Any]) -> str:
    """The lock that an op is about; '' where it does not say."""
    return str(value.get("lock", ""))


class _Told:
    """The grants of a history, and what was said of each later, by the grant's index."""

    def __init__(self, history: History, keeps_on: bool) -> None:
        self._keeps_on = keeps_on
        self.grants: list[Call] = []
        self.longer: dict[int, list[Op]] = {}
        self._ends: dict[int, list[End]] = {}
        self._named: dict[Any, int] = {}
        self._nameless: dict[tuple[int | str, str], int] = {}
        for op, call in _in_order(history):
            self._take(op, call)

    def given_up(self, grant: int) -> list[End]:
        """The ends that its holder told of this grant."""
        return self._ends.get(grant, [])

    def certain(self, grant: int) -> list[Op]:
        """What certainly gave this grant another deadline."""
        return [op for op in self.longer.get(grant, ()) if op.f == "renewed" or op.type == "ok"]

    def _take(self, op: Op, call: Call | None) -> None:
        if op.f == "acquire" and op.type == "ok" and call is not None:
            self.grants.append(call)
            hold = call.get("hold")
            if hold is not None:
                self._named[op.process, hold] = op.index
            else:
                self._nameless[op.process, lock_of(call.value)] = op.index
        elif op.f == "release" and op.type == "invoke" and call is not None:
            if not (self._keeps_on and call.type == "fail"):
                self._end(op, End(op.time, op.time, "release"))
        elif op.f == "lost" and op.value.get("hold") is not None:
            self._end(op, End(op.time, op.time, "lost"))
        elif op.f == "renewed" or (op.f == "extend" and call is not None and call.type != "fail"):
            grant = self._grant(op)
            if grant is not None:
                self.longer.setdefault(grant, []).append(op)

    def _end(self, op: Op, end: End) -> None:
        grant = self._grant(op)
        if grant is not None:
            self._ends.setdefault(grant, []).append(end)

    def _grant(self, op: Op) -> int | None:
        """The grant that an op of its own process speaks of: by name, else the latest."""
        hold = op.value.get("hold")
        if hold is not None:
            return self._named.get((op.process, hold))
        return self._nameless.get((op.process, lock_of(op.value)))


def _in_order(history: History) -> Iterable[tuple[Op, Call | None]]:
    """Each client op in order, grants before what is said of them, each with its call."""
    by_op: dict[int, Call] = {}
    for call in history.calls():
        if call.begin.f in LOCK_OPS:
            by_op[call.begin.index] = call
            if call.end is not None:
                by_op[call.end.index] = call
    ops = [op for op in history.clients() if op.index in by_op or op.f in SPONTANEOUS]
    early = _grants_by_name(ops) if len(ops) > len(by_op) else {}
    done: set[int] = set()
    for op in ops:
        if op.f in SPONTANEOUS:
            grant = early.get((op.process, op.value.get("hold")))
            if grant and op.index < grant.index and grant.index not in done:
                done.add(grant.index)
                yield grant, by_op.get(grant.index)
        if op.index not in done:
            yield op, by_op.get(op.index)


def _grants_by_name(ops: Iterable[Op]) -> dict[tuple[int | str, Any], Op]:
    """The first grant of each process and hold.

    A library's own thread may speak of a hold before the answer that grants it is written.
    """
    found: dict[tuple[int | str, Any], Op] = {}
    for op in ops:
        if op.f == "acquire" and op.type == "ok" and op.value.get("hold") is not None:
            found.setdefault((op.process, op.value["hold"]), op)
    return found


def _leases(grant: Op, longer: Iterable[Op]) -> tuple[tuple[int, float], ...]:
    """The leases of a grant; `longer` are the ops that may have given it another deadline: extends
    with their invocations, and renewals, in order.

    Who asks for a shorter lease counts on no more than that from then on.
    """
    deadline = grant.value.get("deadline")
    leases = [(grant.time, FOREVER if deadline is None else float(deadline))]
    for op in longer:
        start, end = leases[-1]
        if op.f == "extend" and op.type != "ok":
            ttl = op.value.get("ttl")
            if op.type == "invoke" and ttl is not None and op.time <= end < FOREVER:
                leases[-1] = (start, min(end, float(op.time + ttl)))
        elif op.value.get("deadline") is not None:
            later = float(op.value["deadline"])
            leases[-1:] = [(start, later)] if op.time <= end else [leases[-1], (op.time, later)]
    return tuple(leases)


Span = tuple[float, float, Hold]
"""[start, end) of a hold, in ns."""


def believed(found: Iterable[Hold]) -> list[Span]:
    """When each holder believed in its lease."""
    return [(start, end, hold) for hold in found for start, end in hold.believed]


def strictly(found: Iterable[Hold]) -> list[Span]:
    """From each grant until it was given up. One that was lost before it arrived was never on."""
    return [(h.start, h.strict_end, h) for h in found if h.start <= h.strict_end]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two holds of one lock at one time: `second` began while `first` was on. Times in ns."""

    first: Hold
    second: Hold
    start: float
    end: float


def overlaps(intervals: Iterable[Span], clocks: Clocks | None = None) -> list[Overlap]:
    """Intervals [start, end) of one lock that certainly overlap, in order; [t, t] is an instant.

    Each must have begun before the other ended by more than the bounds of both nodes' clocks.
    Each is compared with the earlier one that ends last, so that n holds give at most n
    overlaps: enough to name every hold that should not have been granted, without the square.
    Shared holds may overlap one another, and so are compared with exclusive ones only.
    """
    known = clocks or Clocks()
    found: list[Overlap] = []
    lanes: dict[tuple[str, bool], dict[str | None, _Lane]] = {}
    for start, end, hold in sorted(intervals, key=lambda row: (row[0], row[2].index)):
        node = hold.node if known else None
        rivals = [(hold.lock, False)] if hold.shared else [(hold.lock, False), (hold.lock, True)]
        before = [
            (until, other)
            for rival in rivals
            for other_node, lane in lanes.get(rival, {}).items()
            for until, other in lane.last(end, known.between(node, other_node))
            if start + known.between(node, other_node) < until
        ]
        if before:
            until, other = max(before, key=lambda one: one[0])
            found.append(Overlap(other, hold, start, min(end, until)))
        lane = lanes.setdefault((hold.lock, hold.shared), {}).setdefault(node, _Lane())
        lane.add(start, end, hold)
    return found


class _Lane:
    """Intervals in order of start, and of each beginning of the list the one that ends last."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._last: list[tuple[float, Hold]] = []

    def add(self, start: float, end: float, hold: Hold) -> None:
        self._starts.append(start)
        last = self._last[-1] if self._last else None
        self._last.append(last if last and last[0] >= end else (end, hold))

    def last(self, end: float, gap: int) -> list[tuple[float, Hold]]:
        """Of those that certainly began before `end`, the one that ends last."""
        # On one clock what began in the very instant of an end has met it.
        place = bisect_left(self._starts, end - gap) if gap else bisect_right(self._starts, end)
        return [self._last[place - 1]] if place else []
