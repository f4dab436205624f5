"""A small sub-history that is still not linearizable, for the same reason.

Leaving ops out carelessly makes a history fail for reasons it does not have: a read without the
write it saw, a release without its acquire. So a sub-history counts only if

1. it is not linearizable, and is so again without the op that could not be placed, and
2. what that op rests on (Model.rests_on, or what gives what it wants) is in it.

A long history is first cut to a window before the failure that is enough, found by doubling;
ops that the window leaves without ground are dropped from it. Then ops are left out in
ever smaller groups, until no single one can be (Zeller and Hildebrandt 2002, ddmin).
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from checker.lincheck.budget import Budget, Exhausted
from checker.lincheck.linearize import explore
from checker.lincheck.model import ANY_STATE, UNSAID, Inconsistent, Model
from checker.lincheck.operation import Operation

FIRST_WINDOW = 8
MOST_PAIRED = 24  # ops of which every two are tried together


class Small(NamedTuple):
    """Operations in the order of their invocation. minimal: no single one of them could be left
    out (but for those that the failed op rests on); False if a limit came first."""

    operations: tuple[Operation, ...]
    minimal: bool


def shrink(operations: list[Operation], failed: Operation, model: Model, budget: Budget) -> Small:
    """The sub-history around `failed`, the first op that can not be placed. Keeps to the budget."""
    current = [failed]
    try:
        kept = {failed.id} | _ground(operations, failed, model)
        current = _window(operations, failed, kept, model, budget)
        return Small(tuple(_thin(current, failed, kept, model, budget)), True)
    except _Cut as cut:
        return Small(tuple(cut.operations), False)
    except Exhausted:
        return Small(tuple(current), False)


class _Cut(Exception):
    """A limit was reached; this is how far the thinning came."""

    def __init__(self, operations: list[Operation]) -> None:
        super().__init__()
        self.operations = operations


def _ground(operations: list[Operation], failed: Operation, model: Model) -> set[int]:
    """The ops that `failed` rests on."""
    if not isinstance(model.step(model.initial, failed.action), Inconsistent):
        return set()
    if model.rests_on is not None:
        return {
            op.id for op in _before(operations, failed) if model.rests_on(failed.action, op.action)
        }
    wanted = model.wants(failed.action)
    if wanted is UNSAID or wanted is ANY_STATE:
        return set()
    for op in reversed(_before(operations, failed)):
        if op != failed and not model.observes(op.action) and model.gives(op.action) == wanted:
            return {op.id}
    return set()


def _before(operations: list[Operation], failed: Operation) -> list[Operation]:
    assert failed.returned is not None
    return [op for op in operations if op.id < failed.returned]


def _fails(operations: list[Operation], failed: Operation, model: Model, budget: Budget) -> bool:
    """Condition 1, the sub-history in the order that explore needs."""
    _, first = explore(operations, model, budget)
    if first is None:
        return False
    _, other = explore([op for op in operations if op.id != failed.id], model, budget)
    return other is None


def _window(
    operations: list[Operation],
    failed: Operation,
    kept: set[int],
    model: Model,
    budget: Budget,
) -> list[Operation]:
    """The ops around the failure that fail on their own, with the ones to be kept."""
    place = operations.index(failed)
    grounds = [op for op in operations if op.id in kept]
    size = FIRST_WINDOW
    while size < len(operations):
        near = operations[max(0, place - size) : place + size]
        window = sorted({*_before(near, failed), *grounds})
        good = _grounded(window, failed, kept, model, budget)
        if good is not None and _fails(good, failed, model, budget):
            return good
        size *= 2
    return sorted(_before(operations, failed))


def _grounded(
    window: list[Operation],
    failed: Operation,
    kept: set[int],
    model: Model,
    budget: Budget,
) -> list[Operation] | None:
    """The window without ops that fail in it for want of what was before; None if that is many."""
    for _ in range(len(window) // 2):
        _, first = explore([op for op in window if op.id != failed.id], model, budget)
        if first is None:
            return window
        if first.id in kept:
            return None
        window = [op for op in window if op.id != first.id]
    return None


def _thin(
    operations: list[Operation],
    failed: Operation,
    kept: set[int],
    model: Model,
    budget: Budget,
) -> list[Operation]:
    """Leaves out groups of ops, then single ones, as long as it still fails.

    Then a process's ops together, and any two: an acquire often can't go without its release.
    """
    try:
        size = max(1, len(operations) // 2)
        while True:
            before, start = len(operations), 0
            while start < len(operations):
                group = {op.id for op in operations[start : start + size]}
                rest = _without(group, operations, failed, kept, model, budget)
                start += size if rest is operations else 0
                operations = rest
            if size > 1:
                size //= 2
            elif len(operations) == before:
                singles = operations
                for process in {op.process: None for op in operations}:
                    own = {op.id for op in operations if op.process == process}
                    operations = _without(own, operations, failed, kept, model, budget)
                if len(operations) <= MOST_PAIRED:
                    for pair in combinations([op.id for op in operations], 2):
                        operations = _without(set(pair), operations, failed, kept, model, budget)
                if operations is singles:
                    return operations
    except Exhausted:
        raise _Cut(operations) from None


def _without(
    group: set[int],
    operations: list[Operation],
    failed: Operation,
    kept: set[int],
    model: Model,
    budget: Budget,
) -> list[Operation]:
    """The operations without this group if they fail without it; else the same list."""
    rest = [op for op in operations if op.id in kept or op.id not in group]
    if len(rest) == len(operations) or not _fails(rest, failed, model, budget):
        return operations
    return rest
