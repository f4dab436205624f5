"""What stands in the way of a grant, and until when.

A lock that nobody is granted is not dead while a lease runs on, a fault keeps nodes from answering,
or a request may have been granted without its client hearing of it. Each of these is a span
[begin, over) here, and each is rounded up: to blame a lock takes certainty.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate

from msgspec import Struct

from fencepost.checker.facts.ends import DEAD
from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import FOREVER, Hold
from fencepost.checker.history.history import Call

Span = tuple[float, float]
Killed = Mapping[int | str, tuple[int, int]]
"""When each process that was killed was ordered to die, and when it was seen dead."""


def lease_of(call: Call) -> int:
    """The lease that a call asks for, in ns; 0 where it does not say."""
    return int(call.begin.value.get("ttl") or 0)


def longest_lease(calls: Iterable[Call]) -> int:
    """The longest lease that any of these asks for, in ns."""
    return max(map(lease_of, calls), default=0)


def impairing(on: Iterable[Fault], clients: frozenset[str]) -> list[Fault]:
    """The faults that keep anybody from answering.

    The kill of a client is over when it has happened: what the client had asked for and held
    is left of it, and stands in the way by itself.
    """
    return [fault for fault in on if fault.impairs and not kills_clients(fault, clients)]


def kills_clients(fault: Fault, clients: frozenset[str]) -> bool:
    """Whether a fault does nothing but to kill clients, as its receipt says."""
    killed = any(receipt.get("proved") and receipt.get("processes") for receipt in fault.receipts)
    return killed and fault.impairs is not None and fault.impairs <= clients


def spans(on: Iterable[Fault], lease: int) -> list[Span]:
    """While each fault is on, and a lease longer: servers that are back may begin leases anew."""
    return [(f.start, FOREVER if f.end is None else f.end + lease) for f in on]


class Obstacles:
    """Spans by when they begin, and of each beginning of their list when all are over."""

    def __init__(self, found: Iterable[Span]) -> None:
        rows = sorted(found)
        self._begins = [begin for begin, _ in rows]
        self._over = list(accumulate((over for _, over in rows), max))

    def free(self, since: float, calm: float) -> Span:
        """When none is in the way from `since` on, for as long as `calm`; and when the next begins.

        What begins within `calm` of the end of the others is in the way as well.
        """
        while True:
            place = bisect_right(self._begins, since + calm)
            over = max(since, self._over[place - 1]) if place else since
            if over == since:
                return since, self._begins[place] if place < len(self._begins) else FOREVER
            since = over


class Request(Struct, frozen=True, gc=False):
    """An acquire: until when its client asked, and until when an unheard grant may stand.

    `died`: its client died in it. `over` is its invocation where the outcome is known.
    """

    begin: int
    asked_until: float
    over: float
    died: bool

    @property
    def span(self) -> Span:
        return self.begin, self.over


def request(call: Call, killed: Killed, lease: int) -> Request:
    """`lease` is what counts where the acquire names none."""
    begin, end = call.begin.time, call.end
    if end is not None and end.type == "ok":
        return Request(begin, end.time, begin, False)
    lease = lease_of(call) or lease
    if end is None:
        if call.begin.process not in killed:
            return Request(begin, FOREVER, begin, False)
        _, dead = killed[call.begin.process]
        return Request(begin, dead, dead + lease, True)
    died = bool(end.error and end.error[0] in DEAD)
    return Request(begin, end.time, end.time + lease if end.type == "info" else begin, died)


def left(
    found: Iterable[Hold], said: Mapping[int, Iterable[Call]], leases: Mapping[str, int]
) -> dict[int, float]:
    """When nothing is left of each hold, by its index.

    A release that was answered ok ends a hold. Of any other its lease is left. `said`: the extends
    and releases of each hold (spoken.py); `leases`: those of locks, for holds that name none.
    """
    return {
        hold.index: _over(hold, said.get(hold.index, ()), hold.ttl or leases.get(hold.lock, 0))
        for hold in found
    }


def _over(hold: Hold, said: Iterable[Call], lease: int) -> float:
    """A lease may be longer than its holder knew: by an extension whose answer never came, and by
    a renewal that was under way when the holder was gone."""
    over = hold.furthest if hold.furthest < FOREVER else hold.gone_by + lease
    if hold.renewals and hold.gone_by < FOREVER:
        over = max(over, hold.gone_by + lease)
    for call in said:
        if call.begin.f == "release" and call.type == "ok" and call.end is not None:
            return call.end.time
        if call.begin.f == "extend" and call.type == "info":
            over = max(over, (call.end or call.begin).time + (lease_of(call) or lease))
    return over
