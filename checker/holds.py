"""Holds: each grant of a lock to one process, and when it ended.

Two ends are kept apart, because the debate turns on them. *Strictly* a hold lasts until its
holder gives it up: the invocation of its release, `lost`, or the last sign of life of a
process that is gone. As *believed* it lasts no longer than its deadline.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from checker.history import NEMESIS, UNASKED, Call, History, Op

FOREVER = math.inf
DEAD = ("killed", "crashed")
FAILED_RELEASE = ("ended", "nothing")


@dataclass(frozen=True)
class Hold:
    """One grant. Times in ns since the test's start; an end of `inf` was never seen."""

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
    shared: bool = False

    @property
    def deadline(self) -> float:
        """When the last lease runs out; `inf` for a lock whose lease the client can not see."""
        return self.leases[-1][1]

    @property
    def believed(self) -> list[tuple[int, float]]:
        """When the holder believed: each lease [from, until), cut off at the strict end.

        More than one where an extension was granted after the lease had already run out. A
        lease that was over before its grant arrived was never believed; one that was given up
        in the same instant (stamps may be coarse) was, for that instant.
        """
        return [
            (start, min(end, self.strict_end))
            for start, end in self.leases
            if start < end and start <= self.strict_end
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
    keeps_on = (test or {}).get("failed_release", "ended") == "nothing"
    calls = history.calls()
    gone = _ends_of_processes(history)
    # What was lost before it was granted names no hold.
    lost = {
        op.value["hold"]: op
        for op in reversed(history.clients())
        if op.f == "lost" and op.value.get("hold") is not None
    }
    renewed: dict[Any, list[Op]] = {}
    for op in history.clients():
        if op.f == "renewed":
            renewed.setdefault(op.value.get("hold"), []).append(op)
    releases: dict[Any, Call] = {}
    extends: dict[Any, list[Op]] = {}
    for call in calls:
        hold = call.begin.value.get("hold")
        if call.begin.f == "release" and not (keeps_on and call.type == "fail"):
            releases.setdefault(hold, call)
        elif call.begin.f == "extend" and call.type == "ok":
            assert call.end is not None
            extends.setdefault(hold, []).append(call.end)
    found = [
        _hold(call, releases, extends, renewed, lost, gone)
        for call in calls
        if call.begin.f == "acquire" and call.type == "ok"
    ]
    return sorted(found, key=lambda hold: (hold.start, hold.index))


def _hold(
    call: Call,
    releases: Mapping[Any, Call],
    extends: Mapping[Any, list[Op]],
    renewed: Mapping[Any, list[Op]],
    lost: Mapping[Any, Op],
    gone: Mapping[int | str, tuple[int, str]],
) -> Hold:
    assert call.end is not None
    value, process = call.value, call.begin.process
    # A history of Jepsen's own names no holds: the grant's position then serves as its name.
    name = value.get("hold")
    ends: list[tuple[float, str]] = [(FOREVER, "never")]
    if name in releases:
        ends.append((releases[name].begin.time, "release"))
    if name in lost:
        ends.append((lost[name].time, "lost"))
    if process in gone:
        ends.append(gone[process])
    strict_end, ended_by = min(ends)
    return Hold(
        lock=str(value.get("lock", "")),
        name=str(name if name is not None else call.end.index),
        process=process,
        node=call.begin.node,
        token=value.get("token"),
        ttl=value.get("ttl"),
        asked=call.begin.time,
        start=call.end.time,
        strict_end=strict_end,
        leases=_leases(call, [*extends.get(name, ()), *renewed.get(name, ())]),
        ended_by=ended_by,
        index=call.end.index,
        shared=value.get("mode") == "shared",
    )


def _leases(grant: Call, longer: Iterable[Op]) -> tuple[tuple[int, float], ...]:
    """The leases of a grant; `longer` are the ops that gave it a later deadline."""
    assert grant.end is not None
    deadline = grant.end.value.get("deadline")
    leases = [(grant.end.time, FOREVER if deadline is None else float(deadline))]
    for op in sorted(longer, key=lambda op: op.time):
        later = op.value.get("deadline")
        if later is None:
            continue
        start, end = leases[-1]
        if op.time <= end:
            leases[-1] = (start, max(end, float(later)) if op.f == "renewed" else float(later))
        else:
            leases.append((op.time, float(later)))
    return tuple(leases)


def _ends_of_processes(history: History) -> dict[int | str, tuple[int, str]]:
    """When each process that is gone was last seen alive (ns), and how it went.

    It was killed ("death") where its open op ended with the error kind "killed" or "crashed",
    which the harness wrote and which is no sign of life, or where a `kill` names it. And it is
    gone, by the meaning of `info`, once an op of it ended so: it asks for nothing any more.
    """
    last: dict[int | str, int] = {}
    gone: dict[int | str, str] = {}
    for op in history:
        if op.process == NEMESIS:
            receipt = op.value.get("receipt") or {}
            if op.f == "kill" and op.value.get("phase") != "end":
                gone |= dict.fromkeys(receipt.get("processes", ()), "death")
        elif op.type == "info" and op.error and op.error[0] in DEAD:
            gone[op.process] = "death"
        else:
            last[op.process] = op.time
            if op.type == "info" and op.f not in UNASKED:
                gone.setdefault(op.process, "gone")
    return {process: (last[process], how) for process, how in gone.items() if process in last}


@dataclass(frozen=True)
class Overlap:
    """Two holds of one lock at one time: `second` began while `first` was on. Times in ns."""

    first: Hold
    second: Hold
    start: float
    end: float


def overlaps(intervals: Iterable[tuple[float, float, Hold]]) -> list[Overlap]:
    """Intervals [start, end) of one lock that overlap, in order of time; [t, t] is an instant.

    Each is compared with the earlier one that ends last, so that n holds give at most n
    overlaps: enough to name every hold that should not have been granted, without the square.
    Shared holds may overlap one another, and so are compared with exclusive ones only.
    """
    found: list[Overlap] = []
    latest: dict[tuple[str, bool], tuple[float, Hold]] = {}
    for start, end, hold in sorted(intervals, key=lambda row: (row[0], row[2].index)):
        rivals = [(hold.lock, False)] if hold.shared else [(hold.lock, False), (hold.lock, True)]
        before = max((latest[r] for r in rivals if r in latest), default=None, key=lambda b: b[0])
        if before and start < before[0] and before[1] is not hold:
            found.append(Overlap(before[1], hold, start, min(end, before[0])))
        kind = (hold.lock, hold.shared)
        if kind not in latest or end > latest[kind][0]:
            latest[kind] = (end, hold)
    return found
