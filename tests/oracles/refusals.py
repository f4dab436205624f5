"""`true_refusals`: check each refused acquire by the letter of docs/design.md, pair by pair."""

from __future__ import annotations

from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.holds import FOREVER, Held, bound, completion
from tests.oracles.waiting import Asked


def refused_untruly(
    ops: list[Op], test: dict[str, Any], asked: list[Asked], held: list[Held]
) -> bool:
    """Return whether a client was refused a lock that no client can have had. All are of one
    lock."""
    apart = 2 * max(bound(test, op.node) for op in ops)
    for one in asked:
        if one.done is None or one.done.type != "fail" or one.done.error[0] != "not-granted":  # type: ignore[index]
            continue
        begin, end = one.begun.time, one.done.time
        spans = [(hold.asked.time, _over(ops, hold, held)) for hold in held]
        spans += [(other.begun.time, _answered(other)) for other in asked if other is not one]
        if all(over + apart < begin or end + apart < since for since, over in spans):
            return True
    return False


def _answered(other: Asked) -> float:
    """Return until when a request may be, or come to be, granted."""
    if other.done is None or other.done.type == "info":
        return FOREVER
    return other.done.time


def _over(ops: list[Op], hold: Held, held: list[Held]) -> float:
    """Return when a hold had certainly ended."""
    ends = [FOREVER]
    for op in hold.said:
        done = completion(ops, op) if op.type == "invoke" else None
        if op.f == "release" and done is not None and done.type == "ok":
            ends.append(done.time)
    for other in held:
        later = other.grant.index > hold.grant.index
        if later and other.process != hold.process and not (hold.shared and other.shared):
            ends.append(other.grant.time)
    return min(ends)
