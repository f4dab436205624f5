"""Whether a broken promise of order or of return reached the clients for certain (see truth.py)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from fencepost.checker.history.history import Op
from tests.simulated.truth import FaultSeen, Truth
from tests.simulated.world import MS, SECOND

_AHEAD = 1000 * MS
"""A client that asked this long before another, in calm, was queued before it."""
_NEW = 6000 * MS
"""The same for a process without a grant so far, which may still have been starting."""


@dataclass(frozen=True)
class Asked:
    """An acquire as its client records it.

    `done` is `inf` if it never completed. `new`: its process had been granted nothing before.
    """

    lock: str
    node: str
    shared: bool
    sent: int
    done: float
    type: str
    wakeups: int | None
    new: bool


def asked(ops: list[Op]) -> list[Asked]:
    begun: dict[int | str, tuple[Op, bool]] = {}
    granted: set[int | str] = set()
    found = []
    for op in ops:
        if op.f != "acquire" or op.process == "nemesis":
            continue
        if op.type == "invoke":
            begun[op.process] = op, op.process not in granted
        else:
            found.append(_asked(*begun.pop(op.process), op))
            if op.type == "ok":
                granted.add(op.process)
    return found + [_asked(op, new, None) for op, new in begun.values()]


def _asked(begin: Op, new: bool, end: Op | None) -> Asked:
    return Asked(
        lock=begin.value["lock"],
        node=str(begin.node),
        shared=begin.value.get("mode") == "shared",
        sent=begin.time,
        done=inf if end is None else end.time,
        type="info" if end is None else end.type,
        wakeups=end.value.get("wakeups") if end is not None and end.type == "ok" else None,
        new=new,
    )


def jumped(truth: Truth, ops: list[Op]) -> list[tuple[Asked, Asked]]:
    """Return (overtaken, overtaker) for each overtaking in calm.

    The overtaker was granted a lock before the overtaken, which had asked for it long before; no
    fault was on, or had been on just before.
    """
    gap = truth.gap
    calls = [call for call in asked(ops) if call.type == "ok"]
    return [
        (first, second)
        for first in calls
        for second in calls
        # Two shared grants of one moment may arrive in any order.
        if first.lock == second.lock and not (first.shared and second.shared)
        if first.sent + (_NEW if first.new else _AHEAD) + gap < second.sent
        if second.done + gap < first.done
        if not any(_near(fault, first.sent, second.done) for fault in truth.faults)
    ]


def _near(fault: FaultSeen, start: float, end: float) -> bool:
    after = fault.end + (fault.end - fault.start) + SECOND
    return fault.start - SECOND <= end and after >= start


def woken(ops: list[Op]) -> bool:
    """Return whether waiters, of one lock and in all, were woken more often than requested."""
    each: dict[str, int] = {}
    for call in asked(ops):
        each[call.lock] = each.get(call.lock, 0) + (call.wakeups or 0) - 1
    return max(each.values(), default=0) > 0 and sum(each.values()) > 0
