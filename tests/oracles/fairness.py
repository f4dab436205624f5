"""Promises of queueing locks, for each pair of acquires: order of grants and wakeups."""

from __future__ import annotations

import math
from typing import Any

from fencepost.checker.history.history import Op
from tests.oracles.drawn import MS
from tests.oracles.holds import Held, bound, by_harness, gap, second_grant
from tests.oracles.waiting import Asked, Fault

# Certainly queued after this time, or after this multiple of the slowest op, whichever is longer.
SETTLED, SLOWEST = 500 * MS, 4
# For a client that was never granted anything before, after ten times that.
STARTS = 10


def unfair(
    ops: list[Op],
    test: dict[str, Any],
    asked: list[Asked],
    holds: list[Held],
    faults: list[Fault],
    given: dict[int, float],
) -> bool:
    """Return whether a queue broke a promise. `given`: when a release certainly ended each hold,
    by the index of its grant."""
    promises = test["promises"]
    if promises.get("one_wakeup") and _herd(test, asked, given):
        return True
    faults = [fault for fault in faults if not _elsewhere(fault, ops, test)]
    settled = max(SETTLED, SLOWEST * _slowest(ops, holds, faults))
    return bool(promises.get("fifo")) and any(
        _overtakes(ops, test, one, other, asked, settled, faults)
        for one in asked
        for other in asked
        if one is not other
    )


def _elsewhere(fault: Fault, ops: list[Op], test: dict[str, Any]) -> bool:
    """Return whether a fault hits neither a server nor a client that ever asks for a lock."""
    hit = {*fault.targets, *(fault.impairs or ()), *(node for link in fault.links for node in link)}
    asks = {op.node for op in ops if op.f == "acquire" and op.process != "nemesis"}
    if fault.impairs is None or not hit or not test["servers"] or None in asks:
        return False
    return not any(node in asks or node in test["servers"] for node in hit)


def _herd(test: dict[str, Any], asked: list[Asked], given: dict[int, float]) -> bool:
    """Return whether the waits in any window were woken more often than entries may have ended in
    it."""
    apart = 2 * max(bound(test, one.begun.node) for one in asked)
    woken = [one for one in asked if one.held and one.held.grant.value.get("wakeups")]
    for since in {one.begun.time for one in woken}:
        for until in {one.held.grant.time for one in woken if one.held}:
            inside = [
                one.held.grant.value["wakeups"]
                for one in woken
                if one.held and since <= one.begun.time and one.held.grant.time <= until
            ]
            ended = [
                one
                for one in asked
                if one.begun.time <= until + apart and _out(one, given) >= since - apart
            ]
            if sum(inside) > len(ended):
                return True
    return False


def _out(one: Asked, given: dict[int, float]) -> float:
    """Return by when an entry in the queue had certainly ended."""
    if one.held is None:
        return math.inf if one.done is None or one.done.type == "info" else one.done.time
    return given[one.held.grant.index]


def _slowest(ops: list[Op], holds: list[Held], faults: list[Fault]) -> int:
    """Return the longest op, of those in calm, that waited for no other client and succeeded."""
    longest = 0
    for held in holds:
        earlier = [one for one in holds if one.grant.index < held.grant.index]
        hindered = any(one.lock == held.lock and one.first > held.asked.time for one in earlier)
        granted = held.grant.time
        if not hindered and not any(_stirs(f, ops, held.asked.time, granted) for f in faults):
            longest = max(longest, granted - held.asked.time)
    for end in ops:
        if end.process == "nemesis" or end.type != "ok" or end.f == "acquire":
            continue
        begun = max(
            (
                op.time
                for op in ops
                if op.process == end.process
                and op.type == "invoke"
                and op.f == end.f
                and op.index < end.index
            ),
            default=end.time,
        )
        if not any(_stirs(fault, ops, begun, end.time) for fault in faults):
            longest = max(longest, end.time - begun)
    return longest


def _stirs(fault: Fault, ops: list[Op], begin: int, end: int) -> bool:
    """Return whether a fault was on between two times, or had ended too recently.

    Too recently means: for less long than it was on.
    """
    over = min(fault.end, ops[-1].time)
    return fault.start < end and begin <= over + (over - fault.start)


def _overtakes(
    ops: list[Op],
    test: dict[str, Any],
    one: Asked,
    other: Asked,
    asked: list[Asked],
    settled: int,
    faults: list[Fault],
) -> bool:
    """Return whether `one` was granted while `other`, which had asked before, waited in calm."""
    if one.held is None or any(
        third.held is not None and second_grant(third.held, one.held) for third in asked
    ):
        return False
    between = gap(test, one.begun.node, other.begun.node)
    granted = one.held.grant.time
    until: float = math.inf if other.done is None else other.done.time
    if other.done is not None and by_harness(other.done):
        return False
    for op in ops:
        expired = op.f == "lost" and op.value.get("hold") is None
        if expired and op.process == other.begun.process and other.begun.time <= op.time <= until:
            return False
    if other.held is None:
        until -= settled
    served = any(
        op.process == other.begun.process
        and (op.type, op.f) == ("ok", "acquire")
        and op.index < other.begun.index
        for op in ops
    )
    enters = settled if served else STARTS * settled
    if other.begun.time + enters + between > one.begun.time or granted + between >= until:
        return False
    for fault in faults:
        leaves = settled if other.held is None else 0
        if _stirs(fault, ops, other.begun.time, granted + leaves):
            return False
    if other.held is None:
        return True
    if not (one.held.shared and other.held.shared):
        return _first(test, one.held, other.held)
    return any(
        third.held is not None
        and not third.held.shared
        and _first(test, one.held, third.held)
        and _first(test, third.held, other.held)
        for third in asked
        if third.held is not None and granted <= third.held.grant.time <= other.held.grant.time
    )


def _first(test: dict[str, Any], one: Held, other: Held) -> bool:
    """Return whether the service certainly granted one hold before the other."""
    if one.token is not None and other.token is not None and one.token != other.token:
        return bool(one.token < other.token)
    between = gap(test, one.node, other.node)
    if one.believed_until() + between > other.grant.time:
        return False
    return one.grant.time + between < min(other.leases[0][1], other.early)
