"""Refusals to a process that had the lock; part of `liveness`.

A lock that promises to be reentrant grants a process the lock that it has. It breaks that if it
refuses the lock, or lets the process wait for itself for longer than the bound. To blame it takes
certainty: the hold was exclusive, its lease ran until then, and no fault was on since it was asked
for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fencepost.checker.facts.faults import Fault, over_time
from fencepost.checker.facts.grant_events import unsent
from fencepost.checker.facts.holds import Hold, lock_of, seconds
from fencepost.checker.facts.refusals import was_refused
from fencepost.checker.facts.spans import Spans
from fencepost.checker.history.history import Call


def refused_again(
    acquires: Iterable[Call],
    found: Sequence[Hold],
    on: Iterable[Fault],
    bound: int,
    end_ns: int,
) -> Iterator[dict[str, Any]]:
    """Yield evidence for each acquire that was refused to a holder of the lock, or waited for
    longer than `bound` (ns). The history ends at `end_ns`."""
    active = over_time(on)
    had: dict[tuple[str, int | str], list[Hold]] = {}
    grants: dict[str, list[Hold]] = {}
    for hold in sorted(found, key=lambda hold: hold.start):
        grants.setdefault(hold.lock, []).append(hold)
        # A second lease began after the first had expired: another may have had the lock.
        if not hold.shared and len(hold.leases) == 1:
            had.setdefault((hold.lock, hold.process), []).append(hold)
    held = {
        mine: Spans((hold.start, hold.believed_end, hold) for hold in rows)
        for mine, rows in had.items()
    }
    starts = {lock: [hold.start for hold in rows] for lock, rows in grants.items()}
    for call in acquires:
        begin, shown = call.begin, _shown(call, bound, end_ns)
        if shown is None:
            continue
        lock = lock_of(begin.value)
        mine = held.get((lock, begin.process))
        for hold in () if mine is None else mine.touching(begin.time, shown):
            if hold.index > begin.index or shown >= hold.believed_end:
                continue
            first = bisect_left(starts[lock], hold.start)
            last = bisect_right(starts[lock], shown)
            theirs = any(one.process != begin.process for one in grants[lock][first:last])
            if not theirs and not active.count(hold.asked, shown):
                yield _evidence(call, hold, shown)
                break


def _shown(call: Call, bound: int, end_ns: int) -> int | None:
    """Return when an acquire has shown that the lock was not granted: it was refused, or was in
    vain for longer than the bound. None if it has not."""
    end = call.end
    if end is not None and was_refused(call):
        return end.time
    if call.type == "ok" or unsent(call):
        return None
    late = call.begin.time + bound
    return late if late < (end_ns if end is None else end.time) else None


def _evidence(call: Call, hold: Hold, shown: int) -> dict[str, Any]:
    begin, end = call.begin, call.end
    vain = "and was refused" if was_refused(call) else f"and waited in vain until {seconds(shown)}"
    return {
        "what": (
            f"{hold.who} asked again for the lock at {seconds(begin.time)} {vain}, though it had "
            f"hold {hold.name} of it and the lock promises to be reentrant."
        ),
        "time_ns": shown,
        "valid": False,
        "ops": [hold.index, begin.index, *([] if end is None else [end.index])],
    }
