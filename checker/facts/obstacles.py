"""Obstacles to a grant, and how long each lasts.

A lock that is not granted is not dead while a lease runs, a fault keeps nodes from answering, or a
request may have been granted without its client receiving the answer. Each of these is a span
[begin, over) here, and is rounded up: to blame a lock takes certainty.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from operator import attrgetter, itemgetter

from msgspec import Struct

from fencepost.checker.facts.ends import DEAD
from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import FOREVER, Hold
from fencepost.checker.history.history import Call, Op

Span = tuple[float, float]
Killed = Mapping[int | str, tuple[int, int]]
"""For each killed process, when the kill was ordered and when it was seen dead."""


def lease_of(call: Call) -> int:
    """Return the lease that a call asks for, in ns; 0 if it names none."""
    return int(call.begin.value.get("ttl") or 0)


def longest_lease(calls: Iterable[Call]) -> int:
    """Return the longest lease that any of these asks for, in ns."""
    return max(map(lease_of, calls), default=0)


def impairing(on: Iterable[Fault], clients: frozenset[str]) -> list[Fault]:
    """Return the faults that keep any node from answering.

    The kill of a client is over at once; the client's requests and holds outlast it, and are
    obstacles of their own.
    """
    return [fault for fault in on if fault.impairs and not kills_clients(fault, clients)]


def kills_clients(fault: Fault, clients: frozenset[str]) -> bool:
    """Return whether a fault only kills clients, according to its receipt."""
    killed = any(receipt.get("proved") and receipt.get("processes") for receipt in fault.receipts)
    return killed and fault.impairs is not None and fault.impairs <= clients


def spans(on: Iterable[Fault], lease: int) -> list[Span]:
    """Return the span of each fault, extended by a lease: recovered servers may begin leases
    again."""
    return [(f.start, FOREVER if f.end is None else f.end + lease) for f in on]


class Obstacles:
    """Spans by their begin, with the latest end of every prefix of the list."""

    def __init__(self, found: Iterable[Span]) -> None:
        rows = sorted(found)
        self._begins = [begin for begin, _ in rows]
        self._over = list(accumulate((over for _, over in rows), max))

    def free(self, since: float, calm: float) -> Span:
        """Return when no obstacle is left from `since` on for at least `calm`, and when the next
        begins.

        An obstacle that begins within `calm` of the end of the others counts as well.
        """
        while True:
            place = bisect_right(self._begins, since + calm)
            over = max(since, self._over[place - 1]) if place else since
            if over == since:
                return since, self._begins[place] if place < len(self._begins) else FOREVER
            since = over


class Request(Struct, frozen=True, gc=False):
    """An acquire: until when its client asked, and until when a grant that it did not receive may
    last.

    `died`: its client died during it. `over` is its invocation if the outcome is known.
    `open_until`: when it ended, or its client did; FOREVER if neither is known.
    """

    begin: int
    asked_until: float
    over: float
    died: bool
    open_until: float

    @property
    def span(self) -> Span:
        return self.begin, self.over


def request(
    call: Call, killed: Killed, lease: int, notices: Mapping[int | str, list[Op]]
) -> Request:
    """Build the request of a call. `lease` applies if the acquire names none.

    `notices`: the reports of each process that the service ended its wait; it asks until then.
    """
    begin, end = call.begin.time, call.end
    found = notices.get(call.begin.process)
    told = FOREVER if found is None else _first(found, call.begin)
    if end is not None and end.type == "ok":
        return Request(begin, end.time, begin, False, end.time)
    lease = lease_of(call) or lease
    if end is None:
        if call.begin.process not in killed:
            return Request(begin, told, begin, False, FOREVER)
        _, dead = killed[call.begin.process]
        return Request(begin, min(dead, told), dead + lease, True, dead)
    died = bool(end.error and end.error[0] in DEAD)
    over = end.time + lease if end.type == "info" else begin
    return Request(begin, min(end.time, told), over, died, end.time)


def _first(found: list[Op], since: Op) -> float:
    """Return the time of the first of these ops after another."""
    place = bisect_left(found, since.index, key=attrgetter("index"))
    return found[place].time if place < len(found) else FOREVER


def freed(events: Mapping[int, Iterable[Call]], reached: Callable[[Call], bool]) -> dict[int, int]:
    """Return when each hold was certainly given back, by its index: its release was answered ok,
    and had reached all servers."""
    found: dict[int, int] = {}
    for index, calls in events.items():
        for call in calls:
            release = call.begin.f == "release" and call.type == "ok"
            if release and call.end is not None and reached(call):
                found.setdefault(index, call.end.time)
    return found


def left(
    found: Iterable[Hold],
    events: Mapping[int, Iterable[Call]],
    leases: Mapping[str, int],
    freed: Mapping[int, int],
    extended: Callable[[Call], float | None],
) -> dict[int, float]:
    """Return when each hold has certainly ended, by its index: it was given back (`freed`), or its
    lease has expired. `events`: the extends and releases of each hold (hold_events.py); `leases`:
    the default leases of locks; `extended`: by when a call has arrived that may have extended
    a hold without its holder's knowledge.
    """
    found_over = {}
    for hold in found:
        lease = hold.ttl or leases.get(hold.lock, 0)
        over = _expired(hold, events.get(hold.index, ()), lease, extended)
        found_over[hold.index] = min(over, freed.get(hold.index, FOREVER))
    return found_over


def _extended(events: Iterable[Call], lease: int) -> Iterator[tuple[int, int, float, int]]:
    """Yield each extend that was answered ok with a deadline: when it was sent and answered, the
    deadline, and its ttl."""
    for call in events:
        if call.begin.f == "extend" and call.type == "ok" and call.end is not None:
            deadline = call.end.value.get("deadline")
            if deadline is not None:
                yield call.begin.time, call.end.time, deadline, lease_of(call) or lease


def _begun_late(sent: int, answered: int, deadline: float, lease: int) -> float:
    """Return when a lease has expired that the service began as late as it can have. Its client
    counts from the request on, and the service from when it arrives."""
    latest = answered + lease if lease else FOREVER
    return min(deadline + (answered - sent), latest)


def _expired(
    hold: Hold, events: Iterable[Call], lease: int, extended: Callable[[Call], float | None]
) -> float:
    """Return the latest end of a lease, which may be later than its holder knew: because its
    request arrived late, by an extension whose answer never came, or by a renewal under way when
    its holder stopped."""
    over = hold.furthest
    if over == FOREVER:
        over = hold.gone_by + lease
        over = max(over, hold.deadline) if hold.deadline < FOREVER else over
    else:
        answered = [(hold.asked, hold.start, hold.leases[0][1], lease), *_extended(events, lease)]
        over = max(over, *(_begun_late(*one) for one in answered))
    if hold.renewals:
        over = max(over, min(hold.furthest, hold.gone_by) + lease)
    late = [(at, call) for call in events if (at := extended(call)) is not None]
    for at, call in sorted(late, key=itemgetter(0)):
        ttl = lease_of(call) or lease
        # It extends nothing once the lease has expired.
        over = max(over, (call.end or call.begin).time + ttl, min(at, over) + ttl)
    return over
