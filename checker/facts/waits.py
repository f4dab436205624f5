"""Waits: the spans in which a lock had to be granted, and whether it was.

A wait is *due* once no obstacle is left (obstacles.py), and its limit is a bound later. A grant by
then satisfies it. A missing grant alone does not blame the lock: clients must have asked without a
pause for longer than the bound; or one asked after the limit, with no other client asking
meanwhile, and again, and was not granted it either time. A short request, even just before the
limit, proves nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice, takewhile
from typing import Any, Literal

from fencepost.checker.facts.holds import FOREVER, Hold, seconds
from fencepost.checker.facts.obstacles import (
    Killed,
    Obstacles,
    Request,
    Span,
    longest_lease,
    request,
)
from fencepost.checker.history.history import Call

InTime = Literal["unknown"] | bool

PAUSES_IN_BOUND = 10
"""A client asks without a pause if it waits at most a tenth of the bound between two acquires."""
TIMES_IN_VAIN = 2
"""A single failed request may be a server's hiccup."""


@dataclass(frozen=True)
class Wait:
    """One span in which a lock had to be granted: from `since`, by `limit` at the latest.

    `kind` is "heal", "holder" or "minority"; `granted` the first grant after `since`. `valid`: True
    granted in time; False requested and not granted; "unknown" if requests were open when the
    history ended, before the limit; None if no client asked for long enough. Times in ns.
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
        if self.valid is None:
            return f"{self.why}: no client asked for long enough to tell."
        late = "never was" if self.granted is None else f"was only after {self.waited_s:.3f} s"
        return (
            f"{self.why}: the lock should have been granted by {seconds(self.limit)}, but {late}."
        )

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

    `left` is when each hold has certainly ended; `apart`, how far apart stamps of two nodes must be
    to be ordered (ns).
    """

    def __init__(
        self,
        lock: str,
        found: list[Hold],
        acquires: list[Call],
        left: Mapping[int, float],
        killed: Killed,
        bound: int,
        apart: int,
        end_ns: int,
    ) -> None:
        self.lock = lock
        self.found = found
        self.lease = longest_lease(acquires)
        self.left = left
        self.bound = bound
        self._end_ns = end_ns
        self._pause = bound / PAUSES_IN_BOUND
        self._starts = [hold.start for hold in found]
        requests = [request(call, killed, self.lease) for call in acquires]
        self._asked = self._stretches(requests)
        self._vain = _alone(requests, acquires, apart)
        self.deaths = [one.span for one in requests if one.died]
        past = [one.span for one in requests] + [(h.start, left[h.index]) for h in found]
        past.sort()
        self._begun = [begin for begin, _ in past]
        self._stood = list(accumulate((over for _, over in past), max))

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
        end = min(FOREVER if granted is None else granted, blocked, until, self._end_ns)
        valid: InTime | None = None
        if granted is not None and granted <= limit:
            valid = True
        elif self._asked_on(due, end) or self._asked_again(limit, end):
            valid = False
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
            if found and begin <= found[-1][1] + self._pause:
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

    def _asked_on(self, due: float, end: float) -> bool:
        """Return whether clients asked without a pause for longer than the bound."""
        return any(over - begin > self.bound for begin, over in self._within(due, end))

    def _asked_again(self, limit: float, end: float) -> bool:
        """Return whether a client asked after the limit, unobstructed and in vain, and again."""
        later = islice(self._vain, bisect_right(self._vain, (limit, FOREVER)), None)
        # No other client asked during these, so they end in the order in which they begin.
        vain = takewhile(lambda span: span[1] <= end, later)
        return len(list(islice(vain, TIMES_IN_VAIN))) == TIMES_IN_VAIN

    def _asks_at(self, start: float, end: float) -> bool:
        """Return whether a client was still asking at `end`, or pausing between two requests."""
        return any(over + self._pause >= end for _, over in self._within(start, end))


def _alone(requests: list[Request], acquires: list[Call], apart: int) -> list[Span]:
    """Return the acquires that were not granted although no other client asked meanwhile, or had a
    request that may have been granted without its receiving the answer."""
    found: list[Span] = []
    stood = -FOREVER
    begins = [one.begin for one in requests]
    for call, one, following in zip(acquires, requests, [*begins[1:], FOREVER], strict=True):
        alone = stood + apart < one.begin and one.asked_until + apart < following
        if alone and not one.died and call.type != "ok":
            found.append((one.begin, one.asked_until))
        stood = max(stood, one.asked_until, one.over)
    return found
