"""Taken: the spans in which clients may have a lock, so that others may be refused.

A hold lasts until a release that reached all servers was answered, or until its lease has certainly
expired. A request that may have been granted, without an answer that its client received, lasts as
long as such a lease may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from fencepost.checker.facts.closings import Closings
from fencepost.checker.facts.ends import FOREVER
from fencepost.checker.facts.hindered import Hindered, over_with, prolonged, sent
from fencepost.checker.facts.holds import Hold, seconds
from fencepost.checker.facts.obstacles import Request, lease_of
from fencepost.checker.history.history import Call


class Taken(Struct, frozen=True, gc=False):
    """A span [begin, over) in which the lock may be taken. `why`: the event that ended it, at `at`,
    as the start of a sentence. `granted`: the mode of the hold with whose grant it begins; else
    "". `lease`: nothing but the end of a lease ends that hold. `request`: the index of the request
    of unknown outcome that takes the lock, if no fault hindered its client or held it back; else
    -1."""

    begin: float
    over: float
    at: float
    why: str
    granted: str = ""
    lease: bool = False
    request: int = -1


def taken(
    found: Iterable[Hold],
    left: Mapping[int, float],
    freed: Mapping[int, int],
    asked: Iterable[tuple[Call, Request]],
    hindered: Hindered,
    closings: Closings,
    lease: int,
    end_ns: int,
    delay: float,
) -> Iterator[Taken]:
    """Yield the spans in which clients may have a lock. `left` and `freed`: when each hold has
    certainly ended, and those that a release ended (obstacles.py); `closings`: when clients had
    closed; `lease`: the longest of this lock; `delay`: how long a message travels if nothing holds
    it back. The history ends at `end_ns`."""
    for hold in found:
        over, given_back = left[hold.index], freed.get(hold.index)
        if over != given_back:
            over = hindered.outlasts(hold, over, hold.ttl or lease)
            over = over if given_back is None else min(over, given_back)
        released = over == given_back
        event = _given_up(hold, over, released)
        yield Taken(hold.start, over, *event, _mode(hold.shared), lease=not released)
    for call, one in asked:
        over = one.over
        if over > one.begin:
            ttl = lease_of(call) or lease
            over = max(over, hindered.lasts(sent(call, over - ttl, closings), delay, ttl))
        answered = FOREVER if call.end is None and not one.died else one.asked_until
        if hindered.meets(call.begin.node, one.begin, min(answered, end_ns)):
            over = max(over, answered)
        if hindered.one_by_one and call.type == "fail":
            request = sent(call, (call.end or call.begin).time, closings)
            over = max(over, hindered.leaves(request, lease_of(call) or lease, delay))
        begin = _granted_from(call, one, hindered, delay)
        if over > one.begin:
            who = f"{call.begin.node or 'a client'} (process {call.begin.process})"
            why = f"After a request of {who} that may have been granted"
            alone = call.begin.index if over == one.over else -1
            yield Taken(begin, over, over, why, request=alone)


def _granted_from(call: Call, one: Request, hindered: Hindered, delay: float) -> float:
    """Return from when on a request may have been granted without its client's knowledge. In calm,
    the client would have heard of a grant that came much earlier than it gave up."""
    if call.end is None or call.type != "info" or one.died or hindered.one_by_one:
        return one.begin
    calm = hindered.calm(call.begin.node, one.begin, call.end.time)
    return max(one.begin, call.end.time - delay) if calm else one.begin


def _given_up(hold: Hold, over: float, released: bool) -> tuple[float, str]:
    """Return the event that ended a hold: when, and in words."""
    if released:
        return over, f"After {hold.who} released hold {hold.name} at {seconds(over)}"
    if hold.ended_by in ("death", "gone", "close") and hold.strict_end < hold.deadline:
        when = seconds(hold.strict_end)
        return hold.strict_end, f"After {hold.who} disappeared with hold {hold.name} at {when}"
    return over, f"After the lease of {hold.who} expired, of hold {hold.name} at {seconds(over)}"


def taken_by_faults(
    hindered: Hindered, leases: Iterable[tuple[float, float, int]]
) -> Iterator[Taken]:
    """Yield the spans in which servers may not answer, or leases may run that a fault prolonged.
    `leases`: see `prolonged`."""
    lease = prolonged(hindered.servers, leases)
    for fault in hindered.servers:
        over = over_with(fault, lease[fault.name])
        at = FOREVER if fault.end is None else fault.end
        last = fault.end == hindered.last
        why = "After the last fault was healed" if last else f"After the end of: {fault.what}"
        if fault.name not in hindered.survived:
            yield Taken(fault.start, over, at, why)
            continue
        down = ", ".join(sorted(fault.impairs or fault.targets))
        since = f"With {down} impaired from {seconds(fault.start)}"
        yield Taken(fault.start, fault.start + lease[fault.name], fault.start, since)
        if fault.end is not None:
            yield Taken(fault.end, over, at, why)


def mode_of(call: Call) -> str:
    """Return the mode in which a client asks for a lock."""
    return _mode(call.begin.value.get("mode") == "shared")


def _mode(shared: bool) -> str:
    return "shared" if shared else "exclusive"
