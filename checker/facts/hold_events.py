"""The events of each hold after its grant: its extends, releases and `lost`.

An op names its hold. In a history whose holds have no names (Jepsen's) it refers to the latest
grant of its own process and lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.grant_events import refused, unsent
from fencepost.checker.facts.holds import Hold, facts, lock_of
from fencepost.checker.facts.tokens import trusted
from fencepost.checker.history.history import Call, History, Op


@dataclass(frozen=True)
class HoldEvents:
    """The events of one hold. `own`: calls by the holder's process, by the grant's index, in order;
    `lost`: when that process first reported the hold lost; `foreign`: releases by other processes.
    """

    own: dict[int, list[Call]] = field(default_factory=dict)
    lost: dict[int, Op] = field(default_factory=dict)
    foreign: list[tuple[Call, Hold]] = field(default_factory=list)


def trusted_hold_events(history: History, test: Mapping[str, Any], clocks: Clocks) -> HoldEvents:
    """Return the events of the holds that `trusted` finds in a history."""
    key = "hold_events", clocks.key, facts(test)
    return history.once(key, lambda: [hold_events(history, trusted(history, test, clocks))])[0]


def hold_events(history: History, found: list[Hold]) -> HoldEvents:
    granted = {hold.index: hold for hold in found}
    named: dict[tuple[int | str, str], Hold] = {}
    anybody: dict[str, Hold] = {}
    calls: list[tuple[Call, Hold | None]] = []  # grants without a name, and ops other than grants
    for call in history.calls():
        f = call.begin.f
        if f == "acquire":
            hold = granted.get(call.end.index) if call.end is not None else None
            if hold is not None and call.get("hold") is not None:
                named[hold.process, hold.name] = anybody[hold.name] = hold
            elif hold is not None:
                calls.append((call, hold))
        elif f == "extend" or f == "release":
            calls.append((call, None))
    events = HoldEvents()
    latest: dict[tuple[int | str, str], Hold] = {}
    for call, hold in calls:
        value, process = call.begin.value, call.begin.process
        if hold is not None:
            latest[process, hold.lock] = hold
            continue
        name = value.get("hold")
        own = (
            latest.get((process, lock_of(value)))
            if name is None
            else named.get((process, str(name)))
        )
        if own is not None:
            events.own.setdefault(own.index, []).append(call)
        elif call.begin.f == "release" and str(name) in anybody:
            events.foreign.append((call, anybody[str(name)]))
    for op in history.lost():
        if (op.process, str(op.value.get("hold"))) in named:
            events.lost.setdefault(named[op.process, str(op.value["hold"])].index, op)
    return events


def refusal(call: Call) -> Op | None:
    """Return the answer that refused a call because the hold had ended, or None."""
    return call.end if refused(call) else None


def ends(call: Call, test: Mapping[str, Any]) -> bool:
    """Return whether a release, whatever its answer, may have ended its hold.

    The test's `failed_release` defines the effect of a failed one; one that was refused as
    `not-held` shows that the hold has ended, and one that reached no server changed nothing.
    """
    keeps_on = test.get("failed_release", "ended") == "nothing"
    failed = call.type == "fail" and not refused(call)
    return call.begin.f == "release" and not (failed and (keeps_on or unsent(call)))
