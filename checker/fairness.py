"""Order of grants, and how many clients a release wakes; part of what `liveness` judges.

Both are promises of queueing locks (ZooKeeper's and etcd's recipes), and both are told from the
history alone. Who asked first can be told only where the one had been asking for a while, in
calm, when the other began: before that, either may have come to the service first.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

from checker.faults import Fault
from checker.history import Call
from checker.holds import seconds

# How long an acquire must have been under way for the service to have it in its queue.
SETTLED_NS = 500_000_000


@dataclass
class Fairness:
    """`waited`: grants that were waited for so long that an overtaking would be told.

    `wakeups`: how often waiters were woken, None where the locks do not say; `asked`: how often
    the lock was asked for. Each such request makes one entry in the queue, whose end wakes one.
    """

    waited: int = 0
    overtakings: list[dict[str, Any]] = field(default_factory=list)
    wakeups: int | None = None
    asked: int = 0

    def details(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "fifo": {"waited_long": self.waited, "overtakings": len(self.overtakings)}
        }
        if self.wakeups is not None:
            found["wakeups"] = {"in_all": self.wakeups, "acquires": self.asked}
        return found

    @property
    def herd(self) -> dict[str, Any] | None:
        """Evidence that releases woke more than one client each."""
        if self.wakeups is None or self.wakeups <= self.asked:
            return None
        each = self.wakeups / self.asked
        return {
            "what": f"Waiters were woken {self.wakeups} times for {self.asked} requests, "
            f"{each:.1f} for each: the end of one hold or wait wakes a herd.",
            "time_ns": 0,
            "valid": False,
        }


def fairness(calls: list[Call], on: list[Fault], end_ns: int) -> Fairness:
    """`calls` are acquires, in order of invocation."""
    found = Fairness(asked=len(calls))
    granted = [call for call in calls if call.type == "ok" and call.end is not None]
    told = [call.value["wakeups"] for call in granted if call.value.get("wakeups") is not None]
    found.wakeups = sum(told) if told else None
    found.waited = sum(1 for call in granted if _end(call) - call.begin.time > SETTLED_NS)
    calm = _Calm(on, end_ns)
    by_lock: dict[str, list[Call]] = {}
    for call in granted:
        by_lock.setdefault(str(call.begin.value.get("lock", "")), []).append(call)
    for mine in by_lock.values():
        _overtakings(mine, calm, found)
    return found


def _overtakings(granted: list[Call], calm: _Calm, found: Fairness) -> None:
    """Each grant against those who had been waiting since before it asked.

    A grant is compared with the one that waits longest: that finds whether there was any.
    """
    by_end = sorted(granted, key=lambda call: _end(call))
    waiting = sorted(granted, key=lambda call: call.begin.time)
    first = 0
    done: set[int] = set()
    for call in by_end:
        done.add(call.begin.index)
        while first < len(waiting) and waiting[first].begin.index in done:
            first += 1
        if first == len(waiting):
            return
        other = waiting[first]
        # The one who waits longest is still waiting: was the one before it in the queue?
        if other.begin.time + SETTLED_NS > call.begin.time:
            continue
        if not calm.between(other.begin.time, _end(call)):
            continue
        found.overtakings.append(
            {
                "what": f"{call.begin.node or 'a client'} (process {call.begin.process}) asked at "
                f"{seconds(call.begin.time)} and was granted the lock at {seconds(_end(call))}, "
                f"before {other.begin.node or 'a client'} (process {other.begin.process}), which "
                f"had been waiting since {seconds(other.begin.time)}.",
                "time_ns": _end(call),
                "valid": False,
                "ops": [call.begin.index, other.begin.index],
            }
        )


def _end(call: Call) -> int:
    assert call.end is not None
    return call.end.time


class _Calm:
    """Whether any fault was on between two times, or was over for less long than it had been on.

    TCP and the clients' own reconnecting wait twice as long after each try: what could not be
    reached for a while may not be tried again for as long.
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
