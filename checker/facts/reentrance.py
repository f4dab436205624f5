"""Refusals to a process that had the lock; part of `liveness`.

A lock that promises to be reentrant grants a process the lock that it has. To blame it takes
certainty: the hold was exclusive, its lease ran until the refusal was answered, and no fault was on
since it was asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fencepost.checker.facts.faults import Fault, over_time
from fencepost.checker.facts.holds import Hold, lock_of, seconds
from fencepost.checker.facts.refusals import was_refused
from fencepost.checker.facts.spans import Spans
from fencepost.checker.history.history import Call


def refused_again(
    acquires: Iterable[Call], found: Sequence[Hold], on: Iterable[Fault]
) -> Iterator[dict[str, Any]]:
    """Yield evidence for each acquire that was refused to a holder of the lock."""
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
        begin, end = call.begin, call.end
        if end is None or not was_refused(call):
            continue
        lock = lock_of(begin.value)
        mine = held.get((lock, begin.process))
        for hold in () if mine is None else mine.touching(begin.time, end.time):
            if hold.index > begin.index or end.time >= hold.believed_end:
                continue
            first = bisect_left(starts[lock], hold.start)
            last = bisect_right(starts[lock], end.time)
            theirs = any(one.process != begin.process for one in grants[lock][first:last])
            if not theirs and not active.count(hold.asked, end.time):
                yield _evidence(call, hold)
                break


def _evidence(call: Call, hold: Hold) -> dict[str, Any]:
    assert call.end is not None
    return {
        "what": (
            f"{hold.who} asked again for the lock at {seconds(call.begin.time)} and was refused, "
            f"though it had hold {hold.name} of it and the lock promises to be reentrant."
        ),
        "time_ns": call.end.time,
        "valid": False,
        "ops": [hold.index, call.begin.index, call.end.index],
    }
