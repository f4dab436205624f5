"""Refusals to a process that had the lock; part of `liveness`.

A lock that promises to be reentrant grants a process the lock that it has. To blame it takes
certainty: the hold was exclusive, its lease ran until the refusal was answered, and no fault was on
since it was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fencepost.checker.facts.faults import Fault, over_time
from fencepost.checker.facts.holds import Hold, lock_of, seconds
from fencepost.checker.facts.refusals import was_refused
from fencepost.checker.history.history import Call


def refused_again(
    acquires: Iterable[Call], found: Sequence[Hold], on: Iterable[Fault]
) -> Iterator[dict[str, Any]]:
    """Yield evidence for each acquire that was refused to a holder of the lock."""
    active = over_time(on)
    held: dict[str, list[Hold]] = {}
    for hold in found:
        held.setdefault(hold.lock, []).append(hold)
    for call in acquires:
        begin, end = call.begin, call.end
        if end is None or not was_refused(call):
            continue
        granted = held.get(lock_of(begin.value), ())
        others = [one.start for one in granted if one.process != begin.process]
        for hold in granted:
            if hold.process != begin.process or hold.shared or hold.index > begin.index:
                continue
            # A second lease began after the first had expired: another may have had the lock.
            has = end.time < hold.believed_end and len(hold.leases) == 1
            theirs = any(hold.start <= start <= end.time for start in others)
            if has and not theirs and not active.count(hold.asked, end.time):
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
