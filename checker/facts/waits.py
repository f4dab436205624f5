"""Waits: the spans in which a run tested that a lock becomes available again.

A wait is *due* once no obstacle is left (obstacles.py), and its limit is a bound later. A grant by
then satisfies it. A missing grant does not blame the lock: dead_time.py does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, Literal

from fencepost.checker.facts.dead_time import PAUSES_IN_BOUND
from fencepost.checker.facts.holds import FOREVER, Hold, seconds
from fencepost.checker.facts.obstacles import (
    Killed,
    Obstacles,
    Request,
    Span,
    lease_of,
    longest_lease,
    request,
)
from fencepost.checker.history.history import Call, Op

InTime = Literal["unknown"] | bool


@dataclass(frozen=True)
class Wait:
    """One span in which a lock had to be granted: from `since`, by `limit` at the latest.

    `kind` is "heal", "holder" or "minority"; `granted` the first grant after `since`. `valid`: True
    granted in time; "unknown" if clients were asking when the history ended, before the limit; None
    if neither. Times in ns.
    """

    kind: str
    lock: str
    why: str
    since: float
    limit: float
    granted: int | None
    valid: InTime | None

    @property
    def waited_s(self) -> float | None:
        return None if self.granted is None else (self.granted - self.since) / 1e9

    def describe(self) -> str:
        if self.valid is True:
            return f"{self.why}: granted after {self.waited_s:.3f} s."
        if self.valid == "unknown":
            return f"{self.why}: the history ends too early to tell, before {seconds(self.limit)}."
        return f"{self.why}: no client asked for long enough while it was certainly free."

    def to_json(self) -> dict[str, Any]:
        return {
            "what": self.describe(),
            "time_ns": self.since,
            "valid": "unknown" if self.valid is None else self.valid,
            "waited_s": self.waited_s,
            "lock": self.lock,
        }


class Waited:
    """One lock: its holds in order of grant, its acquires, and how it served them.

    `left` and `freed`: when each hold has certainly ended, and those that a release ended;
    `apart`: how far apart stamps of two nodes must be to be ordered (ns); `notices`: the reports of
    each process that it waits no more.
    """

    def __init__(
        self,
        lock: str,
        found: list[Hold],
        acquires: list[Call],
        left: Mapping[int, float],
        freed: Mapping[int, int],
        killed: Killed,
        bound: int,
        apart: int,
        end_ns: int,
        notices: Mapping[int | str, list[Op]],
    ) -> None:
        self.lock = lock
        self.found = found
        self.lease = longest_lease(acquires)
        self.left, self.freed = left, freed
        self.bound = bound
        self.apart = apart
        self._end_ns = end_ns
        self.pause = bound / PAUSES_IN_BOUND
        self._starts = [hold.start for hold in found]
        requests = [request(call, killed, self.lease, notices) for call in acquires]
        self.requests = list(zip(acquires, requests, strict=True))
        self._asked = self._stretches(requests)
        self.deaths = [one.span for one in requests if one.died]
        past = [one.span for one in requests] + [(h.start, left[h.index]) for h in found]
        past.sort()
        self._begun = [begin for begin, _ in past]
        self._stood = list(accumulate((over for _, over in past), max))

    def in_vain_since(self, since: float, left: Mapping[int, float] | None = None) -> float | None:
        """Return from when on, not before `since`, clients have asked for the lock without a pause,
        after the end of every hold, until the history ended; None if for no longer than the
        bound. `left`: when holds have ended, if it is not when they certainly have."""
        left = self.left if left is None else left
        since = max([since, *(left[hold.index] for hold in self.found)])
        for begin, over in self._asked[-1:]:
            since = max(since, begin)
            if over + self.pause >= self._end_ns and self._end_ns - since > self.bound:
                return since
        return None

    def as_asked(self) -> dict[int, float]:
        """Return when each hold had ended by its index, if a lease without a holder lasts no longer
        than was asked for."""
        return {
            hold.index: min(self.left[hold.index], hold.gone_by + (hold.ttl or self.lease))
            for hold in self.found
        }

    def leases(self, one_by_one: bool) -> Iterator[tuple[float, float, int]]:
        """Yield the leases that a fault may prolong, (begin, over, ttl): of requests, and of holds
        that were not released. A request that failed began one only on single servers, if clients
        ask them `one_by_one`."""
        for call, one in self.requests:
            if call.type == "fail" and not one_by_one:
                continue
            yield one.begin, one.asked_until, lease_of(call) or self.lease
        for hold in self.found:
            over = self.left[hold.index]
            if over != self.freed.get(hold.index):
                yield hold.asked, over, hold.ttl or self.lease

    def wait(
        self,
        kind: str,
        why: str,
        since: float,
        due: float,
        obstacles: Obstacles,
        *,
        until: float = FOREVER,
        own: Hold | None = None,
    ) -> Wait:
        """Judge one wait.

        `obstacles`: further spans in the way, apart from earlier holds and requests; `until`: when
        the wait's reason ends; `own`: the hold whose end is the reason.
        """
        due, blocked = self._due(since, due, obstacles)
        granted = self._first_grant(since, own)
        if granted is not None and granted > until:
            granted = None
        limit = due + self.bound
        end = min(blocked, until, self._end_ns)
        valid: InTime | None = None
        if granted is not None and granted <= limit:
            valid = True
        elif end == self._end_ns <= limit and self._asks_at(due, end):
            valid = "unknown"
        return Wait(kind, self.lock, why, since, limit, granted, valid)

    def _due(self, since: float, due: float, obstacles: Obstacles) -> Span:
        """Return when the last obstacle ended, and when the next began."""
        place = bisect_left(self._begun, since)
        if place:
            due = max(due, self._stood[place - 1])
        return obstacles.free(due, self.bound)

    def _first_grant(self, since: float, own: Hold | None) -> int | None:
        later = islice(self.found, bisect_left(self._starts, since), None)
        return next((hold.start for hold in later if hold is not own), None)

    def _stretches(self, requests: list[Request]) -> list[Span]:
        """Yield the spans in which clients asked without a pause, in order."""
        found: list[Span] = []
        for one in requests:
            begin, end = one.begin, min(one.asked_until, self._end_ns)
            if found and begin <= found[-1][1] + self.pause:
                found[-1] = (found[-1][0], max(found[-1][1], end))
            else:
                found.append((begin, end))
        return found

    def _within(self, start: float, end: float) -> Iterable[Span]:
        """Yield the parts of these spans between two times."""
        first = max(bisect_right(self._asked, (start, FOREVER)) - 1, 0)
        for begin, over in islice(self._asked, first, None):
            if begin >= end:
                return
            if min(over, end) > max(begin, start):
                yield max(begin, start), min(over, end)

    def _asks_at(self, start: float, end: float) -> bool:
        """Return whether a client was still asking at `end`, or pausing between two requests."""
        return any(over + self.pause >= end for _, over in self._within(start, end))
