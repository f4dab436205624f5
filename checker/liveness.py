"""`liveness`: does the lock come back?

A lock that is never granted is perfectly safe. So: after the last fault is healed, and after
a holder dies, somebody must get it within the lease plus a stated bound
(`liveness_bound_s`, default 5 s); and where the service promises to survive a minority of
dead nodes (`promises.minority`), somebody must get it in that time while only a minority is
impaired. A promise that nobody put to the test is not kept but unknown. Where the lock promises
an order of grants (`promises.fifo`), or that a release wakes one client (`promises.one_wakeup`),
these are judged as well; the time to the next grant after each holder's death is in the details.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from checker.fairness import Fairness, fairness
from checker.faults import Fault, faults
from checker.history import Call, History
from checker.holds import FOREVER, Hold, holds, seconds
from checker.verdict import Valid, Verdict, worst

DEFAULT_BOUND_S = 5.0
# Faults that keep a server from answering; a jumped clock does not.
_IMPAIRING = ("partition", "pause", "kill", "hold", "failover")


@dataclass(frozen=True)
class _Wait:
    """One span in which somebody had to get the lock: from `start`, by `limit` at the latest."""

    why: str
    start: float
    limit: float
    granted: int | None
    valid: Valid
    death: bool = False

    @property
    def waited_s(self) -> float | None:
        return None if self.granted is None else (self.granted - self.start) / 1e9

    def words(self) -> str:
        if self.granted is not None and self.valid is True:
            return f"{self.why}: granted after {self.waited_s:.3f} s."
        if self.valid == "unknown":
            return f"{self.why}: nobody asked for long enough to tell."
        late = "never" if self.granted is None else f"only after {self.waited_s:.3f} s"
        return (
            f"{self.why}: somebody should have been granted the lock by {seconds(self.limit)}; "
            f"it was granted {late}."
        )


def liveness(history: History, test: Mapping[str, Any]) -> Verdict:
    """Somebody acquires in time after the last heal, a holder's death, and a minority fault."""
    bound = int(test.get("liveness_bound_s", DEFAULT_BOUND_S) * 1e9)
    calls = [call for call in history.calls() if call.begin.f == "acquire"]
    found = holds(history, test)
    on = faults(history)
    waits = [_after_heal(history, calls, found, on, bound)]
    waits += _after_deaths(history, calls, found, on, bound)
    if (test.get("promises") or {}).get("minority"):
        waits += _minority(history, calls, found, on, list(test.get("servers") or ()), bound)
    bad = [wait for wait in waits if wait.valid is False]
    fair = fairness(calls, on, history.end_ns)
    unfair = _unfair(fair, test.get("promises") or {})
    valid = False if unfair else worst(wait.valid for wait in waits)
    evidence = [
        {
            "what": wait.words(),
            "time_ns": wait.start,
            "valid": wait.valid,
            "waited_s": wait.waited_s,
        }
        for wait in (bad or ([] if unfair else waits))
    ]
    evidence += unfair
    deaths = [wait.waited_s for wait in waits if wait.death and wait.waited_s is not None]
    details = {
        "bound_s": bound / 1e9,
        "waits": len(waits),
        "after_deaths_s": [round(waited, 3) for waited in deaths],
        **fair.details(),
    }
    if valid is False:
        return Verdict(False, str(evidence[0]["what"]), evidence, details)
    longest = max((wait.waited_s or 0.0 for wait in waits), default=0.0)
    if valid == "unknown":
        return Verdict(
            valid,
            waits[0].words()
            if len(waits) == 1
            else "Not every promise to come back was put to the test.",
            evidence,
            details,
        )
    return Verdict(
        True,
        f"The lock came back every time; the longest wait was {longest:.3f} s.",
        evidence,
        details,
    )


def _unfair(fair: Fairness, promises: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What speaks against a promise of order."""
    found = list(fair.overtakings) if promises.get("fifo") else []
    if promises.get("one_wakeup") and fair.herd is not None:
        found.append(fair.herd)
    return found


def _ttl(calls: Iterable[Call]) -> int:
    return max((int(call.begin.value.get("ttl") or 0) for call in calls), default=0)


def _judge(
    why: str,
    start: float,
    free: float,
    bound: int,
    grants: list[Hold],
    calls: list[Call],
    end_ns: int,
) -> _Wait:
    """True: granted in time. False: asked for and not granted. Else unknown.

    From `free` on no old lease is in the way, so that a refusal before it proves nothing.
    """
    limit = free + bound
    granted = min((hold.start for hold in grants if hold.start >= start), default=None)
    if granted is not None and granted <= limit:
        return _Wait(why, start, limit, granted, True)
    asked = any(
        call.begin.time <= limit and (call.end is None or call.end.time >= free) for call in calls
    )
    return _Wait(why, start, limit, granted, False if asked and end_ns >= limit else "unknown")


def _after_heal(
    history: History, calls: list[Call], found: list[Hold], on: list[Fault], bound: int
) -> _Wait:
    start = max((fault.end or history.end_ns for fault in on), default=0)
    why = "After the last fault was healed" if on else "From the start"
    return _judge(why, start, start + _ttl(calls), bound, found, calls, history.end_ns)


def _after_deaths(
    history: History, calls: list[Call], found: list[Hold], on: list[Fault], bound: int
) -> list[_Wait]:
    waits = []
    for hold in found:
        if hold.ended_by not in ("death", "gone") or hold.strict_end >= hold.deadline:
            continue
        mine = [call for call in calls if str(call.begin.value.get("lock", "")) == hold.lock]
        due = hold.deadline
        if due == FOREVER:
            due = hold.strict_end + (hold.ttl or _ttl(mine))
        due = _undisturbed(due, hold.strict_end, on, history.end_ns)
        later = [h for h in found if h.lock == hold.lock and h.start > hold.strict_end]
        why = f"After {hold.who} was gone with hold {hold.name} at {seconds(hold.strict_end)}"
        wait = _judge(why, hold.strict_end, due, bound, later, mine, history.end_ns)
        if wait.valid != "unknown":
            waits.append(replace(wait, death=True))
    return waits


def _undisturbed(due: float, since: float, on: list[Fault], end_ns: int) -> float:
    """`due`, put off to the end of every fault that was on while somebody was to be granted.

    Kills are over when they have happened, except for a server that is down: its fault ends
    when the server is back.
    """
    for fault in sorted(on, key=lambda fault: fault.start):
        end = fault.end if fault.end is not None else end_ns
        if fault.family in _IMPAIRING and fault.start <= due and end > since:
            due = max(due, end)
    return due


def _minority(
    history: History,
    calls: list[Call],
    found: list[Hold],
    on: list[Fault],
    servers: list[str],
    bound: int,
) -> list[_Wait]:
    """Every span with one to (n-1)/2 impaired servers that lasts a lease plus the bound."""
    edges = sorted({0, history.end_ns} | {t for f in on for t in (f.start, f.end or 0) if t})
    spans: list[tuple[int, int, set[str]]] = []
    for start, end in pairwise(edges):
        down = {
            s
            for f in on
            if f.start <= start and (f.end is None or f.end >= end)
            for s in _impaired(f, servers)
        }
        if not 1 <= len(down) <= (len(servers) - 1) // 2:
            continue
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], end, spans[-1][2] | down)
        else:
            spans.append((start, end, down))
    ttl = _ttl(calls)
    waits = []
    for start, end, down in spans:
        if end - start < ttl + bound:
            continue
        why = f"With {', '.join(sorted(down))} impaired from {seconds(start)}"
        wait = _judge(why, start, start + ttl, bound, found, calls, end)
        if wait.valid != "unknown":
            waits.append(wait)
    return waits


def _impaired(fault: Fault, servers: list[str]) -> set[str]:
    if fault.family not in _IMPAIRING:
        return set()
    links = [node for link in fault.arguments.get("links", ()) for node in link]
    return {node for node in (*fault.targets, *links) if node in servers}
