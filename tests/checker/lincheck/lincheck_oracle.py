"""Brute force: try every order. The only thing it shares with lincheck is the model's step."""

from __future__ import annotations

from typing import Any

from checker.lincheck.history import calls
from checker.lincheck.model import Inconsistent, Model


def linearizable(history: list[dict[str, Any]], model: Model) -> bool:
    """Is there any order of any choice of pending ops, in agreement with real time?"""
    ops = []  # (action, first position, last position or None)
    times = [event.get("time") for event in history]
    for call in calls(enumerate(history, 1)):
        if call.f not in model.functions:
            continue
        action = model.action(call)
        if action is None:
            continue
        ops.append((action, call.invoked, call.returned))
        timed = model.spawns(action) if model.spawns else None
        if timed is not None:
            late = [i for i, t in enumerate(times) if t is not None and t >= timed.at_ns]
            if late:
                ops.append((timed.action, late[0] - 0.5, None))
    return _extend(model, model.initial, ops)


def _extend(model: Model, state: Any, ops: list[Any]) -> bool:
    if all(last is None for _, _, last in ops):
        return True
    first_return = min(last for _, _, last in ops if last is not None)
    for index, (action, first, _) in enumerate(ops):
        if first > first_return:
            continue  # some op that is not placed yet had returned before this one began
        after = model.step(state, action)
        if not isinstance(after, Inconsistent) and _extend(
            model, after, ops[:index] + ops[index + 1 :]
        ):
            return True
    return False
