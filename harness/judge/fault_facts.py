"""Facts about faults (impairs, links and others) that the nemesis did not write."""

from __future__ import annotations

from msgspec.structs import replace

from fencepost.checker.history.history import NEMESIS, History, Op
from fencepost.nemesis.families import facts

_FACTS = {"impairs", "links", "forgets", "loses", "stops", "rejects", "only_messages"}


def with_facts(history: History) -> History:
    """Return the history with the facts that its families state, where ops lack them.

    fencepost writes these facts itself; a history from elsewhere, or one from before 0.1.0, may
    name the family alone. Facts that an op states itself are kept.
    """
    if not any(map(_lacks, history.nemesis())):
        return history
    ops = [_stated(op) if op.process == NEMESIS and _lacks(op) else op for op in history.ops]
    return History(ops, history.notes)


def _lacks(op: Op) -> bool:
    starts = op.value.get("phase") != "end"
    return starts and not op.value.keys() >= _FACTS


def _stated(op: Op) -> Op:
    targets, arguments = list(op.value.get("targets", [])), dict(op.value.get("arguments", {}))
    said = facts(op.f, targets, arguments)
    if said:
        # Cuts that were to reject have dropped messages until the nemesis stated this fact.
        said["rejects"] = False
    return replace(op, value=said | op.value)
