"""Who was refused a lock that nobody had; part of what `liveness` judges.

A lock on one server can promise that it refuses only what somebody has (`promises.true_refusals`).
A client library breaks that where it sends a request again by itself: the reply to its SET is lost,
the second SET finds the key of the first, and the library says no while its user has the lock.

To blame the lock takes certainty: from the invocation of the refused acquire to its end nobody can
have had the lock, nor asked for it. A hold counts from its invocation to the end of a release that
was answered ok; without one until somebody else was granted the lock, because how long a server
keeps a lease its holder does not know. A request that may have been granted unheard counts for
ever: it may arrive at any time later.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from fencepost.checker.facts.holds import FOREVER, Hold, lock_of, seconds
from fencepost.checker.facts.obstacles import Span
from fencepost.checker.history.history import Call

_REFUSED = "not-granted"


@dataclass
class Refusals:
    """`judged`: how many refusals could have been told to be untrue; `untrue`: evidence."""

    judged: int = 0
    untrue: list[dict[str, Any]] = field(default_factory=list)


def refusals(
    acquires: list[Call], found: list[Hold], said: Mapping[int, Iterable[Call]], apart: int
) -> Refusals:
    """`acquires` in order of invocation; `said`: the extends and releases of each hold, by its
    index; stamps of two nodes are in order once they are more than `apart` from each other (ns)."""
    seen = Refusals()
    by_lock: dict[str, list[Call]] = {}
    held: dict[str, list[Hold]] = {}
    for call in acquires:
        by_lock.setdefault(lock_of(call.begin.value), []).append(call)
    for hold in sorted(found, key=lambda hold: hold.start):
        held.setdefault(hold.lock, []).append(hold)
    for lock, mine in by_lock.items():
        for call in _alone(mine, list(_spans(held.get(lock, []), said)), apart):
            seen.judged += 1
            if _was_refused(call):
                seen.untrue.append(_untrue(call))
    return seen


def _spans(held: list[Hold], said: Mapping[int, Iterable[Call]]) -> Iterator[Span]:
    """When each hold of a lock may have been there, in order of grant."""
    for place, hold in enumerate(held):
        over = held[place + 1].start if place + 1 < len(held) else FOREVER
        for call in said.get(hold.index, ()):
            if call.begin.f == "release" and call.type == "ok" and call.end is not None:
                over = call.end.time
        yield hold.asked, over


def _alone(acquires: list[Call], held: list[Span], apart: int) -> Iterator[Call]:
    """The acquires that were answered, and beside which nobody had the lock or asked for it."""
    spans = sorted([*held, *((call.begin.time, _over(call)) for call in acquires)])
    begins = [begin for begin, _ in spans]
    # Until when what began first, the first two, ... was in the way.
    stood = [-FOREVER, *accumulate((over for _, over in spans), max)]
    for call in acquires:
        if call.end is None or call.type == "info":
            continue
        place = bisect_left(begins, call.begin.time)
        # Its own span, and that of the hold which it was granted.
        own = 2 if call.type == "ok" else 1
        after = bisect_left(begins, call.end.time + apart + 1)
        if stood[place] + apart < call.begin.time and after - place == own:
            yield call


def _over(call: Call) -> float:
    """Until when an acquire is in the way of others, beside the hold that it was granted."""
    return FOREVER if call.end is None or call.type == "info" else call.end.time


def _was_refused(call: Call) -> bool:
    error = call.end.error if call.end is not None else None
    return call.type == "fail" and bool(error) and error[0] == _REFUSED  # type: ignore[index]


def _untrue(call: Call) -> dict[str, Any]:
    begin, end = call.begin, call.end
    assert end is not None
    return {
        "what": f"{begin.node or 'a client'} (process {begin.process}) asked for the lock from "
        f"{seconds(begin.time)} to {seconds(end.time)} and was refused it, though nobody had it "
        f"nor asked for it.",
        "time_ns": end.time,
        "valid": False,
        "ops": [begin.index, end.index],
    }
