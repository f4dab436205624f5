"""Is this list of steps a linearization of these operations? Naive on purpose.

It knows nothing of the search: no configurations, no interning, no hints of the model. It runs the
model's plain step from its initial state and walks a clock along the history's positions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from checker.lincheck.model import Action, Inconsistent, Model, State
from checker.lincheck.operation import Operation


class Step(NamedTuple):
    """One op at its linearization point. `operation` is None for a step that nobody invoked."""

    operation: Operation | None
    action: Action
    state: State  # after it


def verify(operations: Iterable[Operation], steps: Iterable[Step], model: Model) -> str | None:
    """None if `steps` is a linearization of `operations`, else what is wrong with it.

    Every op that returned must be there once, a pending one at most once, each with a point
    between its invocation and its return, and each step possible in the state before it.
    """
    operations = list(operations)
    known = {operation.id: operation for operation in operations}
    placed: set[int] = set()
    state = model.initial
    now = -1  # the position in the history before which no further step can be
    for count, step in enumerate(steps):
        after = model.step(state, step.action)
        if isinstance(after, Inconsistent):
            return f"step {count}: {after.why}"
        if after != step.state:
            return f"step {count}: the state after it is {after!r}, not {step.state!r}"
        state = after
        if step.operation is None:
            now = max(now, _not_before(operations, step.action, model))
            continue
        operation = step.operation
        if known.get(operation.id) != operation or step.action != operation.action:
            return f"step {count}: {operation} is no op of this history"
        if operation.id in placed:
            return f"step {count}: {operation} was placed before"
        placed.add(operation.id)
        now = max(now, operation.id)
        if operation.returned is not None and operation.returned < now:
            return f"step {count}: {operation} had returned before"
    for operation in operations:
        if operation.returned is not None and operation.id not in placed:
            return f"{operation} is missing"
    return None


def _not_before(operations: list[Operation], action: Action, model: Model) -> int:
    """The first position at which a step that nobody invoked may happen."""
    for operation in operations:
        timed = model.spawns(operation.action) if model.spawns is not None else None
        if timed is not None and timed.action == action:
            moments = [(op.time, op.id) for op in operations]
            moments += [(op.ended, op.returned) for op in operations if op.returned is not None]
            return min(
                (
                    position
                    for at_ns, position in moments
                    if at_ns is not None and position is not None and at_ns >= timed.at_ns
                ),
                default=1 << 62,
            )
    return 1 << 62
