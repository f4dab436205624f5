"""Shrinks a history to a small one that is still not linearizable, for the same reason.

Leaving ops out carelessly makes a history fail for other reasons: a read without the write it saw,
a release without its acquire. So a sub-history counts only if

1. it stops being linearizable when the op that cannot be placed returns, and is linearizable as a
   whole without that op, and
2. it contains the ops that this op rests on (Model.rests_on, or those that give what it wants).

A long history is first cut to a sufficient window before the failure, found by doubling; ops that
lose their cause are dropped from it. Then ops are left out in ever smaller groups, until no single
one can be (Zeller and Hildebrandt 2002, ddmin).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple

from fencepost.checker.lincheck.budget import Budget, Exhausted
from fencepost.checker.lincheck.failure import first_failure
from fencepost.checker.lincheck.linearize import END, explore_up_to
from fencepost.checker.lincheck.model import ANY_STATE, UNSAID, Inconsistent, Model
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.partials import steps_of

FIRST_WINDOW = 8
MOST_PAIRED = 24  # largest number of ops of which all pairs are tried


class Small(NamedTuple):
    """The sub-history, in the order of invocation. minimal: without any single one of them (but for
    those that the failed op rests on) it does not fail for the same reason; False if a limit was
    reached first."""

    operations: tuple[Operation, ...]
    minimal: bool


def shrink(
    operations: list[Operation], failed: Operation, model: Model, budget: Budget
) -> Small | None:
    """Return the sub-history around `failed`, the first op that cannot be placed; None if the
    budget ends before any sub-history is known to fail."""
    shrinking = _Shrinking(failed, _ground(operations, failed, model), model, budget)
    try:
        shrinking.thin(shrinking.window(operations))
        minimal = True
    except Exhausted:
        minimal = False
    if shrinking.best is None:
        return None
    return Small(tuple(sorted(shrinking.best)), minimal)


def _ground(operations: list[Operation], failed: Operation, model: Model) -> set[int]:
    """Return the ops that `failed` rests on."""
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


def _before(operations: Iterable[Operation], failed: Operation) -> list[Operation]:
    return [op for op in operations if op.id < _end(failed)]


def _end(operation: Operation) -> int:
    assert operation.returned is not None
    return operation.returned


class _Shrinking:
    """A shrinking in progress; `best` is the smallest sub-history known to fail. All methods raise
    Exhausted."""

    def __init__(self, failed: Operation, ground: set[int], model: Model, budget: Budget) -> None:
        self.failed, self.kept = failed, {failed.id} | ground
        self.model, self.budget = model, budget
        self.best: list[Operation] | None = None

    def fails(self, operations: list[Operation]) -> bool:
        """Return whether condition 1 holds."""
        _, first = explore_up_to(operations, _end(self.failed), self.model, self.budget)
        if first is None:
            return False
        _, other = explore_up_to(self._rest(operations), END, self.model, self.budget)
        if other is not None:
            return False
        self.best = operations
        return True

    def _rest(self, operations: list[Operation]) -> list[Operation]:
        return [op for op in operations if op.id != self.failed.id]

    def window(self, operations: list[Operation]) -> list[Operation]:
        """Return a window of ops around the failure that fails by itself, with the ops to keep."""
        place = operations.index(self.failed)
        grounds = [op for op in operations if op.id in self.kept]
        size = FIRST_WINDOW
        while size < len(operations):
            near = operations[max(0, place - size) : place + size]
            good = self._grounded(sorted({*_before(near, self.failed), *grounds}))
            if good is not None and self.fails(good):
                return good
            size *= 2
        whole = self._enough(operations)
        assert self.fails(whole), "the engine does not confirm the op that failed"
        return whole

    def _grounded(self, window: list[Operation]) -> list[Operation] | None:
        """Drop ops whose cause lies before the window; return None if those are too many."""
        for _ in range(len(window) // 2):
            first = first_failure(self._rest(window), self.model, self.budget)
            if first is None:
                return window
            if first.id in self.kept:
                return None
            window = [op for op in window if op.id != first.id]
        return None

    def _enough(self, operations: list[Operation]) -> list[Operation]:
        """Return the ops that returned before `failed` or never will, and those open then that one
        explanation needs."""
        end = _end(self.failed)
        past = self._rest(_before(operations, self.failed))
        search, stuck = explore_up_to(past, end, self.model, self.budget, trace=True)
        assert stuck is None, f"another op failed before: {stuck}"
        (_, path), *_ = next(iter(search.configurations.values()))
        placed = {step.operation.id for step in steps_of(path, past) if step.operation is not None}
        return sorted(
            op
            for op in _before(operations, self.failed)
            if op.returned is None or op.returned <= end or op.id in placed
        )

    def thin(self, operations: list[Operation]) -> None:
        """Leave out groups of ops, then single ones, while it still fails.

        Then a process's ops together, and any two, because an acquire often cannot go without its
        release.
        """
        size = max(1, len(operations) // 2)
        while True:
            before, start = len(operations), 0
            while start < len(operations):
                group = {op.id for op in operations[start : start + size]}
                rest = self._without(group, operations)
                start += size if rest is operations else 0
                operations = rest
            if size > 1:
                size //= 2
            elif len(operations) == before:
                rest = self._together(operations)
                if rest is operations:
                    return
                operations = rest

    def _together(self, operations: list[Operation]) -> list[Operation]:
        """Leave out ops that can only go together; return the same list if none can."""
        for process in {op.process: None for op in operations}:
            own = {op.id for op in operations if op.process == process}
            operations = self._without(own, operations)
        if len(operations) <= MOST_PAIRED:
            for pair in combinations([op.id for op in operations], 2):
                operations = self._without(set(pair), operations)
        return operations

    def _without(self, group: set[int], operations: list[Operation]) -> list[Operation]:
        """Return the operations without this group if they fail without it; else the same list."""
        rest = [op for op in operations if op.id in self.kept or op.id not in group]
        return rest if len(rest) < len(operations) and self.fails(rest) else operations
