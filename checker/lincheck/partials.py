"""Finds the longest partial linearizations before an op fails.

They come from a search that drops nothing: a way pruned because of a later result would be missing
here, and an innocent op would be shown as blocked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fencepost.checker.lincheck.budget import Budget
from fencepost.checker.lincheck.configurations import Taken
from fencepost.checker.lincheck.crashed import COST
from fencepost.checker.lincheck.linearize import Walk
from fencepost.checker.lincheck.model import Action, Inconsistent, Model, State
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.search import Search
from fencepost.checker.lincheck.verifier import Step, verify

MOST_MB = 400  # growth of the process allowed for keeping all configurations
MOST_PARTIALS = 8  # partial linearizations shown
MOST_BLOCKED = 12  # next ops shown for each


class Blocked(NamedTuple):
    """An op that could come next, and why it does not fit; None: it fits, but leads no further.

    A lease that may have ended by then is no reason: the op fits no better after its end."""

    operation: Operation
    why: str | None


class Partial(NamedTuple):
    """A longest partial linearization: its steps, the state after them, the possible next ops."""

    steps: tuple[Step, ...]
    state: State
    blocked: tuple[Blocked, ...]


class Partials(NamedTuple):
    """The result. failed: the first op that cannot be placed, or None; `longest` are the longest
    ways to place the ops that returned before it, of `configurations` in all."""

    failed: Operation | None
    longest: tuple[Partial, ...] = ()
    configurations: int = 0


def partials(operations: list[Operation], model: Model, budget: Budget) -> Partials:
    """Search without any pruning. Raises Exhausted."""
    walk = Walk.begin(operations, model, budget.growing(MOST_MB), trace=True, prune=False)
    failed = walk.to_end()
    if failed is None:
        return Partials(None)
    assert failed.returned is not None
    count = sum(map(len, walk.search.configurations.values()))
    leases = walk.leases
    ends = [] if leases is None else [end for own in leases.offered.values() for end in own]
    longest = _longest(walk.search, operations, failed, model, ends)
    for partial in longest:
        wrong = verify(operations, partial.steps, model, before=failed.returned)
        assert wrong is None, f"the partial linearization found is wrong: {wrong}"
    return Partials(failed, longest, count)


def _longest(
    search: Search,
    operations: list[Operation],
    failed: Operation,
    model: Model,
    ends: Sequence[Action],
) -> tuple[Partial, ...]:
    by_id = {operation.id: operation for operation in operations}
    assert failed.returned is not None
    crashed = [op for op in operations if op.returned is None and op.id < failed.returned]
    found = []
    for (number, done), entries in search.configurations.items():
        placed = done.bit_count()
        for used, path in entries:
            found.append((-placed, used & COST, number, done, path))
    found.sort(key=lambda entry: entry[:4])
    longest = []
    for _, _, number, done, path in found[:MOST_PARTIALS]:
        state: State = search.table.states[number]
        steps = tuple(steps_of(path, operations))
        taken = {step.operation.id for step in steps if step.operation is not None}
        open_ops = [failed] + [
            by_id[op]
            for op, (bit, _) in search.slots.ops.items()
            if not bit & done and op != failed.id
        ]
        left = [op for op in crashed if op.id not in taken]
        next_ops = [*open_ops, *left[-MOST_BLOCKED:]][:MOST_BLOCKED]
        blocked = tuple(Blocked(op, _why(model, state, op.action, ends)) for op in next_ops)
        longest.append(Partial(steps, state, blocked))
    return tuple(longest)


def _why(model: Model, state: State, action: Action, ends: Sequence[Action]) -> str | None:
    """Return why the action does not fit, also after one of `ends`, the steps that were due."""
    after = model.step(state, action)
    if not isinstance(after, Inconsistent):
        return None
    for end in ends:
        ended = model.step(state, end)
        if not isinstance(ended, Inconsistent):
            later = model.step(ended, action)
            if isinstance(later, Inconsistent):
                return later.why
    return after.why


def steps_of(path: Taken | None, operations: list[Operation]) -> list[Step]:
    """Return a configuration's path as steps, from the first to the last.

    Crashed ops of one action are interchangeable: the first use is the one invoked first.
    """
    entries = []
    while path is not None:
        entries.append(path)
        path = path.before
    by_id = {operation.id: operation for operation in operations}
    crashed: dict[Action, list[Operation]] = {}
    for operation in sorted(operations, reverse=True):
        if operation.returned is None:
            crashed.setdefault(operation.action, []).append(operation)
    steps: list[Step] = []
    for entry in reversed(entries):
        if entry.crashed is not None:
            own = crashed.get(entry.crashed)
            steps.append(Step(own.pop() if own else None, entry.crashed, entry.state))
        elif entry.mover:
            operation = by_id[entry.slots[entry.mover.bit_length() - 1]]
            steps.append(Step(operation, operation.action, entry.state))
        bits = entry.observers
        while bits:
            lowest = bits & -bits
            operation = by_id[entry.slots[lowest.bit_length() - 1]]
            steps.append(Step(operation, operation.action, entry.state))
            bits ^= lowest
    return steps
