"""Verifies that a list of steps is a linearization of some operations. Naive on purpose.

It shares nothing with the search: no configurations, no interning, no hints of the model. It runs
the model's plain step from its initial state and walks a clock along the history's positions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import Final, NamedTuple

from fencepost.checker.lincheck.model import Action, Inconsistent, Model, State
from fencepost.checker.lincheck.operation import Operation

NEVER: Final = 1 << 62  # a position after every history


class Step(NamedTuple):
    """One op at its linearization point. `operation` is None for a step without an invocation."""

    operation: Operation | None
    action: Action
    state: State  # after it


def verify(
    operations: Iterable[Operation],
    steps: Iterable[Step],
    model: Model,
    before: int | None = None,
) -> str | None:
    """Return None if `steps` is a linearization of `operations`, else the error in it.

    Every op that returned must occur once, a pending one at most once, each with a point between
    its invocation and its return, and each step must be possible in the state before it. before:
    only ops that had returned before this position must occur.
    """
    operations = list(operations)
    known = {operation.id: operation for operation in operations}
    moments = Moments(operations, model)
    placed: set[int] = set()
    state = model.initial
    now = -1  # no further step can be before this position of the history
    for count, step in enumerate(steps):
        after = model.step(state, step.action)
        if isinstance(after, Inconsistent):
            return f"step {count}: {after.why}"
        if after != step.state:
            return f"step {count}: the state after it is {after!r}, not {step.state!r}"
        state = after
        if step.operation is None:
            now = max(now, moments.of(step.action))
            continue
        operation = step.operation
        if known.get(operation.id) != operation or step.action != operation.action:
            return f"step {count}: {operation} is not an op of this history"
        if operation.id in placed:
            return f"step {count}: {operation} was placed before"
        placed.add(operation.id)
        now = max(now, operation.id)
        if operation.returned is not None and operation.returned < now:
            return f"step {count}: {operation} had returned before"
    last = NEVER if before is None else before
    for operation in operations:
        if (
            operation.returned is not None
            and operation.returned < last
            and operation.id not in placed
        ):
            return f"{operation} is missing"
    return None


class Moments:
    """The earliest positions of steps without an invocation: `timed` has (action, position) of
    each."""

    def __init__(self, operations: list[Operation], model: Model) -> None:
        self.timed: list[tuple[Action, int]] = []
        self._first: dict[Action, int] | None = None
        if model.spawns is None:
            return
        moments = [(op.id, op.time) for op in operations]
        moments += [(op.returned, op.ended) for op in operations if op.returned is not None]
        known = sorted((position, time) for position, time in moments if time is not None)
        latest = list(accumulate((time for _, time in known), max))
        for operation in operations:
            timed = model.spawns(operation.action)
            if timed is not None:
                place = bisect_left(latest, timed.at_ns)
                if place < len(known):
                    self.timed.append((timed.action, known[place][0]))

    def of(self, action: Action) -> int:
        """Return the first position at which this step may happen, or NEVER."""
        if self._first is None:
            self._first = {}
            for own, position in self.timed:
                self._first[own] = min(position, self._first.get(own, NEVER))
        return self._first.get(action, NEVER)
