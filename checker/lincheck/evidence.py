"""What shows that a verdict is right, for a person or another program to look at.

For true: a linearization of every object, which `verifier.verify` accepts. For false: the op that
can not be placed, the longest partial linearizations with their states and why each op
that could come next does not fit, and a sub-history that is small and still not linearizable.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from checker.lincheck.budget import Budget, Exhausted
from checker.lincheck.configurations import Taken
from checker.lincheck.crashed import COST
from checker.lincheck.history import UNKNOWN
from checker.lincheck.linearize import explore
from checker.lincheck.model import Action, Inconsistent, Model, State, shown
from checker.lincheck.operation import Operation
from checker.lincheck.search import Search
from checker.lincheck.shrink import Small, shrink
from checker.lincheck.verifier import Step, verify

LAST_S = 1.0  # for the partial linearizations of a sub-history, where there was no time for all
MOST_PARTIALS = 8  # partial linearizations shown
OBSERVING = ("read", "dequeue")  # whose null result says something
MOST_BLOCKED = 12  # next ops shown for each


class Blocked(NamedTuple):
    """An op that could come next, and why it does not fit; None: it fits, and does not help."""

    operation: Operation
    why: str | None


class Partial(NamedTuple):
    """A longest partial linearization: its steps, the state after them, what could come next."""

    steps: tuple[Step, ...]
    state: State
    blocked: tuple[Blocked, ...]


@dataclass(frozen=True)
class Evidence:
    """valid: the verdict. linearizations: for true, the steps of every object by its key.

    For false: key, the object that fails; failed, an op that can not be placed, as a rule the first
    in the order of return; partials, the longest first (of the sub-history only, where there was no
    time for more); configurations, how many there were in all;
    small, the sub-history. complete: False if a limit cut any of this short; `reason` says which.
    """

    valid: bool | Literal["unknown"]
    linearizations: dict[Hashable, tuple[Step, ...]]
    key: Hashable = None
    failed: Operation | None = None
    partials: tuple[Partial, ...] = ()
    configurations: int = 0
    small: Small | None = None
    complete: bool = True
    reason: str | None = None


def evidence_for(
    valid: bool | Literal["unknown"],
    parts: dict[Hashable, list[Operation]],
    key: Hashable,
    failed: Operation | None,
    model: Model,
    budget: Budget,
) -> Evidence:
    """The evidence for a verdict on these objects, of which `key` failed, at the op `failed` if
    that is known. Never raises Exhausted.

    Raises AssertionError if a verdict of true can not be verified: that is a defect of lincheck.
    """
    if valid == "unknown":
        return Evidence(valid, {}, complete=False, reason="nothing is known")
    if valid:
        return _for_true(parts, model, budget)
    return _for_false(parts[key], failed, key, model, budget)


def _for_true(parts: dict[Hashable, list[Operation]], model: Model, budget: Budget) -> Evidence:
    linearizations = {}
    try:
        for key, operations in parts.items():
            search, failed = explore(operations, model, budget, trace=True)
            assert failed is None, f"the engine does not confirm the verdict: {failed}"
            (_, path), *_ = next(iter(search.configurations.values()))
            steps = tuple(steps_of(path, operations, model))
            wrong = verify(operations, steps, model)
            assert wrong is None, f"the linearization found is wrong: {wrong}"
            linearizations[key] = steps
    except Exhausted as limit:
        return Evidence(True, linearizations, complete=False, reason=limit.reason)
    return Evidence(True, linearizations)


def _for_false(
    operations: list[Operation],
    failed: Operation | None,
    key: Hashable,
    model: Model,
    budget: Budget,
) -> Evidence:
    """Where the op that failed is known, the sub-history comes first: it is small and quick."""
    small = None if failed is None else shrink(operations, failed, model, budget)
    reason = None
    try:
        search, found = explore(operations, model, budget, trace=True)
    except Exhausted as limit:
        reason = limit.reason
        if small is None or failed is None:
            return Evidence(False, {}, key, complete=False, reason=reason)
        operations = list(small.operations)
        try:
            search, found = explore(operations, model, Budget.starting_now(LAST_S), trace=True)
        except Exhausted:
            found = None
        if found is None:  # the limit came before there was a sub-history that fails by itself
            return Evidence(False, {}, key, failed, (), 0, small, False, reason)
    assert found is not None, "the engine does not confirm the verdict"
    failed = failed or found
    small = small or shrink(operations, failed, model, budget)
    if not small.minimal and reason is None:
        reason = "the sub-history could be smaller: a limit was reached"
    count = sum(map(len, search.configurations.values()))
    partials = _partials(search, operations, found, model)
    return Evidence(
        False, {}, key, failed, partials, count, small, small.minimal and reason is None, reason
    )


def _partials(
    search: Search, operations: list[Operation], failed: Operation, model: Model
) -> tuple[Partial, ...]:
    by_id = {operation.id: operation for operation in operations}
    found = []
    for (number, done), entries in search.configurations.items():
        placed = done.bit_count()
        for used, path in entries:
            found.append((-placed, used & COST, number, done, path))
    found.sort(key=lambda entry: entry[:4])
    partials = []
    for _, _, number, done, path in found[:MOST_PARTIALS]:
        state: State = search.table.states[number]
        open_ops = [failed] * (failed.id in search.open) + [
            by_id[op] for op, (bit, _) in search.open.items() if not bit & done and op != failed.id
        ]
        crashed = [op for op in operations if op.returned is None and op.id < _end(failed)]
        next_ops = [*open_ops, *crashed[-MOST_BLOCKED:]][:MOST_BLOCKED]
        blocked = tuple(Blocked(op, _why(model, state, op.action)) for op in next_ops)
        partials.append(Partial(tuple(steps_of(path, operations, model)), state, blocked))
    return tuple(partials)


def _end(operation: Operation) -> int:
    assert operation.returned is not None
    return operation.returned


def _why(model: Model, state: State, action: Action) -> str | None:
    after = model.step(state, action)
    return after.why if isinstance(after, Inconsistent) else None


def steps_of(path: Taken | None, operations: list[Operation], model: Model) -> list[Step]:
    """A configuration's path as steps, from the first to the last.

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
    state = model.initial
    for entry in reversed(entries):
        if entry.crashed is not None:
            own = crashed.get(entry.crashed)
            steps.append(Step(own.pop() if own else None, entry.crashed, entry.state))
        elif entry.mover:
            operation = by_id[entry.slots[entry.mover.bit_length() - 1]]
            steps.append(Step(operation, operation.action, entry.state))
        state = entry.state
        bits = entry.observers
        while bits:
            lowest = bits & -bits
            operation = by_id[entry.slots[lowest.bit_length() - 1]]
            steps.append(Step(operation, operation.action, state))
            bits ^= lowest
    return steps


def described(action: Action) -> str:
    """An op in one short line, for people."""
    line = action.f if action.value is None else f"{action.f} {shown(action.value)}"
    if action.result is UNKNOWN or (action.result is None and action.f not in OBSERVING):
        return line
    return f"{line} -> {shown(action.result)}"
