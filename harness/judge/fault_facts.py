"""Facts about faults (impairs, links, forgets) for a history whose nemesis did not write them."""

from __future__ import annotations

from msgspec.structs import replace

from fencepost.checker.history.history import NEMESIS, History, Op
from fencepost.nemesis.families import facts


def with_facts(history: History) -> History:
    """The history with the facts that its families state, where ops lack them.

    Every fencepost writes these facts since 0.1.0; a history from elsewhere, or an older one, may
    name a family alone. What an op states itself stays as it is.
    """
    lacking = {place for place, op in enumerate(history.ops) if _lacks(op)}
    if not lacking:
        return history
    ops = [_stated(op) if place in lacking else op for place, op in enumerate(history.ops)]
    return History(ops, history.notes)


def _lacks(op: Op) -> bool:
    if op.process != NEMESIS or op.value.get("phase") == "end":
        return False
    return not {"impairs", "links", "forgets"} <= op.value.keys()


def _stated(op: Op) -> Op:
    targets, arguments = list(op.value.get("targets", [])), dict(op.value.get("arguments", {}))
    return replace(op, value=facts(op.f, targets, arguments) | op.value)
