"""A FIFO queue in which every value is enqueued once: four bad patterns.

Henzinger, Sezgin and Vafeiadis, "Aspect-oriented linearizability proofs" (CONCUR 2013): a
complete history of a queue with distinct values is linearizable iff

1. no value is dequeued before, or without, its enqueue,
2. no value is dequeued twice,
3. there are no values a, b with a enqueued before b, and b dequeued before a, or b dequeued
   and a never, and
4. no dequeue found the queue empty while some value must have been in it all the time.

"Before" is real time: returned before the other was invoked. An enqueue that never returned
counts, with no end, if its value was dequeued. Dequeues that never returned may not have
happened: without them, true is true; false is left to the general engine.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import NamedTuple

from fencepost.checker.lincheck.history import UNKNOWN
from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation


class _Stay(NamedTuple):
    """When a value's enqueue and its dequeue (none: never) were invoked and returned."""

    enqueued: float
    in_by: float
    dequeued: float = inf
    out_by: float = inf


def dequeued_in_order(operations: list[Operation], model: Model) -> bool | None:
    """Return whether this history of enqueue and dequeue is linearizable; None if a condition is
    not met."""
    if model.initial:
        return None
    stays: dict[Hashable, _Stay] = {}
    for op in operations:
        if op.action.f == "enqueue":
            if op.action.value in stays:
                return None
            stays[op.action.value] = _Stay(op.id, _end(op))
    fine = True
    pending = False
    empty: list[tuple[float, float]] = []
    for op in operations:
        value = op.action.result
        if op.action.f == "enqueue":
            continue
        if value is UNKNOWN:
            pending = True
        elif value is None:
            empty.append((op.id, _end(op)))
        elif value not in stays or stays[value].out_by < inf or _end(op) < stays[value].enqueued:
            fine = False
        else:
            stays[value] = stays[value]._replace(dequeued=op.id, out_by=_end(op))
    known = [stay for stay in stays.values() if stay.in_by < inf or stay.out_by < inf]
    fine = fine and _in_order(known) and _empty_at_times(known, empty)
    return True if fine else None if pending else False


def _end(operation: Operation) -> float:
    return inf if operation.returned is None else operation.returned


def _in_order(stays: list[_Stay]) -> bool:
    """Check pattern 3, in the order of enqueues: which value was in already, and leaves latest?"""
    earlier = sorted(stays, key=lambda stay: stay.in_by)
    latest, count = -1.0, 0
    for stay in sorted(stays):
        while earlier[count].in_by < stay.enqueued:
            latest = max(latest, earlier[count].dequeued)
            count += 1
        if stay.out_by < latest:
            return False
    return True


def _empty_at_times(stays: list[_Stay], empty: list[tuple[float, float]]) -> bool:
    """Check pattern 4: is some moment of each such dequeue outside every stay that is certain?"""
    certain = sorted((stay.in_by, stay.dequeued) for stay in stays if stay.in_by < stay.dequeued)
    covered: list[list[float]] = []
    for start, end in certain:
        if covered and start < covered[-1][1]:
            covered[-1][1] = max(covered[-1][1], end)
        else:
            covered.append([start, end])
    index = 0
    for start, end in sorted(empty):
        while index < len(covered) and covered[index][1] < start:
            index += 1
        if index < len(covered) and covered[index][0] < start and end < covered[index][1]:
            return False
    return True
