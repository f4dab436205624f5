"""What was said of each hold after its grant: its extends and releases, and `lost`.

An op speaks of a hold by its name. In a history whose holds have no names (Jepsen's) it speaks of
the latest grant of its own process and lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.history import LOCK_OPS, Call, History, Op
from fencepost.checker.holds import Hold, lock_of

NOT_HELD = "not-held"
"""The error kind of an extend or release that was refused because the hold was gone."""


@dataclass(frozen=True)
class Spoken:
    """`own`: what the holder's process called, by the grant's index, in order; `lost`: when that
    process was first told that the hold is over; `foreign`: releases by other processes."""

    own: dict[int, list[Call]] = field(default_factory=dict)
    lost: dict[int, Op] = field(default_factory=dict)
    foreign: list[tuple[Call, Hold]] = field(default_factory=list)


def spoken(history: History, found: list[Hold]) -> Spoken:
    calls = [call for call in history.calls() if call.begin.f in LOCK_OPS]
    granted = {hold.index: hold for hold in found}
    named: dict[tuple[int | str, str], Hold] = {}
    anybody: dict[str, Hold] = {}
    for call in calls:
        hold = granted.get(call.end.index) if call.end is not None else None
        if hold is not None and call.get("hold") is not None:
            named[hold.process, hold.name] = anybody[hold.name] = hold
    said = Spoken()
    latest: dict[tuple[int | str, str], Hold] = {}
    for call in calls:
        value, process = call.begin.value, call.begin.process
        hold = granted.get(call.end.index) if call.end is not None else None
        if hold is not None and call.get("hold") is None:
            latest[process, hold.lock] = hold
        if call.begin.f not in ("extend", "release"):
            continue
        name = value.get("hold")
        by_name = named.get((process, str(name)))
        own = latest.get((process, lock_of(value))) if name is None else by_name
        if own is not None:
            said.own.setdefault(own.index, []).append(call)
        elif call.begin.f == "release" and str(name) in anybody:
            said.foreign.append((call, anybody[str(name)]))
    for op in history.clients():
        if op.f == "lost" and (op.process, str(op.value.get("hold"))) in named:
            said.lost.setdefault(named[op.process, str(op.value["hold"])].index, op)
    return said


def refusal(call: Call) -> Op | None:
    """The answer that refused a call because the hold was gone; None where it was not refused."""
    end = call.end
    if end is None or end.type != "fail" or not end.error:
        return None
    return end if end.error[0] == NOT_HELD else None


def ends(call: Call, test: Mapping[str, Any]) -> bool:
    """Whether a release, whatever was answered, may have ended its hold.

    What one that failed did is the test's `failed_release`.
    """
    keeps_on = test.get("failed_release", "ended") == "nothing"
    return call.begin.f == "release" and not (keeps_on and call.type == "fail")
