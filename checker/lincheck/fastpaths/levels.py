"""A set that only grows, every value added once: reads form levels.

Reads of such a set must be a chain of subsets. So the history falls into levels: the values added
before the first distinct read, the reads that saw exactly those, the values added before the next,
and so on; adds that no read saw come last, or never if they never returned. Within a level the
order is free. So a linearization exists iff real time never orders an op of a later level before
one of an earlier: no op may have returned before an op of an earlier level was invoked. One sort,
one pass. (The same idea for more kinds of objects: Lee and Mathur, "Efficient Decrease-and-Conquer
Linearizability Monitoring", OOPSLA 2025.)
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf

from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation


def rising_reads(operations: list[Operation], model: Model) -> bool | None:
    """Return whether this history of add and read is linearizable; None if a value is added
    twice."""
    initial: frozenset[Hashable] = frozenset(model.initial)
    adds: dict[Hashable, Operation] = {}
    reads: dict[frozenset[Hashable], list[Operation]] = {}
    for operation in operations:
        if operation.action.f == "add":
            if operation.action.value in adds or operation.action.value in initial:
                return None
            adds[operation.action.value] = operation
        else:
            reads.setdefault(operation.action.result, []).append(operation)
    latest = -1  # latest invocation among the levels so far
    seen = initial
    for result in sorted(reads, key=len):
        new = result - seen
        if len(result) - len(new) != len(seen) or not adds.keys() >= new:
            return False  # not a superset of the level before, or a value that was never added
        for level in ([adds.pop(value) for value in new], reads[result]):
            if any(_end(operation) < latest for operation in level):
                return False
            latest = max([latest, *(operation.id for operation in level)])
        seen = result
    return all(_end(operation) > latest for operation in adds.values())


def _end(operation: Operation) -> float:
    return inf if operation.returned is None else operation.returned
