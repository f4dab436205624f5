"""A read-write register in which every value is written once: zones (Gibbons and Korach 1997).

"Testing Shared Memories", SIAM J. Comput. 26(4), theorem 4.5 (section 4, VL with a read mapping):
the write of every read is known, so the ops on one value form a cluster, a write with its reads.
With f the earliest return in the cluster and s the latest invocation, its zone is the interval
between them: forward if f < s, when the register must have the value in all of it; else backward,
when one moment in it is enough. Linearizable iff

1. no read returned before its write was invoked, and every read value was written,
2. no two forward zones overlap, and
3. no backward zone lies inside a forward zone.

The initial value is a write before all. A write that never returned counts, with no end, if its
value was read; else it never happened.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from itertools import pairwise
from math import inf

from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation


def unique_writes(operations: list[Operation], model: Model) -> bool | None:
    """Return whether this history of read and write is linearizable; None if a value is written
    twice."""
    written: dict[Hashable, tuple[float, float]] = {model.initial: (-1.0, -1.0)}
    for operation in operations:
        if operation.action.f == "write":
            value = operation.action.value
            if value in written:
                return None
            written[value] = operation.id, _end(operation)
    first_end: dict[Hashable, float] = {}
    last_start: dict[Hashable, float] = {}
    for operation in operations:
        if operation.action.f == "read":
            value = operation.action.result
            if value not in written or _end(operation) < written[value][0]:
                return False
            first_end[value] = min(first_end.get(value, inf), _end(operation))
            last_start[value] = max(last_start.get(value, -1.0), operation.id)
    zones = []
    for value, (start, end) in written.items():
        if end == inf and value not in first_end:
            continue
        zones.append((min(first_end.get(value, inf), end), max(last_start.get(value, -1.0), start)))
    return _compatible(zones)


def _end(operation: Operation) -> float:
    return inf if operation.returned is None else operation.returned


def _compatible(zones: list[tuple[float, float]]) -> bool:
    """Check conditions 2 and 3, for zones (f, s)."""
    forward = sorted(zone for zone in zones if zone[0] < zone[1])
    for (_, end), (start, _) in pairwise(forward):
        if start < end:
            return False
    starts = [start for start, _ in forward]
    for end, start in zones:
        if start <= end:  # backward: from start to end
            around = bisect_right(starts, start) - 1
            if around >= 0 and forward[around][0] < start and end < forward[around][1]:
                return False
    return True
