"""Try every order by brute force. The oracle shares only the model's step with lincheck."""

from __future__ import annotations

from typing import Any

from fencepost.checker.lincheck.history import calls
from fencepost.checker.lincheck.model import Inconsistent, Model


def linearizable(history: list[dict[str, Any]], model: Model) -> bool:
    """Return whether some order of some choice of pending ops agrees with real time."""
    return _extend(model, [op[:3] for op in _ops(history, model)])


def first_failure(history: list[dict[str, Any]], model: Model) -> int | None:
    """Return the line of the op whose return makes the history not linearizable, or None.

    An op that is open at a return may have happened by then, with the result that it has.
    """
    ops = _ops(history, model)
    for end, line in sorted((last, line) for _, _, last, line in ops if last is not None):
        known = [
            (action, first, last if last is not None and last <= end else None)
            for action, first, last, _ in ops
            if first < end
        ]
        if not _extend(model, known):
            return line
    return None


def _ops(history: list[dict[str, Any]], model: Model) -> list[tuple[Any, float, int | None, int]]:
    """Return (action, first position, last position or None, line) of every constraining op."""
    ops: list[tuple[Any, float, int | None, int]] = []
    times = [event.get("time") for event in history]
    for call in calls(enumerate(history, 1)):
        if call.f not in model.functions:
            continue
        action = model.action(call)
        if action is None:
            continue
        ops.append((action, call.invoked, call.returned, call.line))
        timed = model.spawns(action) if model.spawns else None
        if timed is not None:
            late = [i for i, t in enumerate(times) if t is not None and t >= timed.at_ns]
            if late:
                ops.append((timed.action, late[0] - 0.5, None, call.line))
    return ops


def _extend(model: Model, ops: list[Any]) -> bool:
    """Return whether these ops, each (action, first position, last or None), have a valid order."""
    dead_ends: set[tuple[Any, frozenset[int]]] = set()

    def possible(state: Any, left: frozenset[int]) -> bool:
        if all(ops[index][2] is None for index in left):
            return True
        if (state, left) in dead_ends:
            return False
        first_return = min(ops[index][2] for index in left if ops[index][2] is not None)
        for index in left:
            action, first, _ = ops[index]
            if first > first_return:
                continue  # some op without a place had returned before this one started
            after = model.step(state, action)
            if not isinstance(after, Inconsistent) and possible(after, left - {index}):
                return True
        dead_ends.add((state, left))
        return False

    return possible(model.initial, frozenset(range(len(ops))))
