"""Hindered: the spans in which faults keep servers from answering, or single clients from asking.

A fault of a client that does not ask hinders no other client. A fault leaves two things behind:
leases that servers began again after it, and renewals whose answers it kept from a client.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import replace
from heapq import heappop, heappush

from msgspec import Struct

from fencepost.checker.facts.closings import Closings
from fencepost.checker.facts.ends import FOREVER
from fencepost.checker.facts.faults import Fault, over_time
from fencepost.checker.facts.holds import Hold
from fencepost.checker.facts.majorities import cut_off, survived
from fencepost.checker.facts.obstacles import Span, kills_clients
from fencepost.checker.facts.spans import Spans
from fencepost.checker.history.history import Call


class Sent(Struct, frozen=True, gc=False):
    """A request: sent by `node` at `begin` or later, and given up at `over`. `closed`: when its
    client had certainly closed, or was dead (closings.py); FOREVER if that is not known."""

    node: str | None
    begin: float
    over: float
    closed: float = FOREVER


def sent(call: Call, over: float, closings: Closings) -> Sent:
    """Return the request of a call that its client gave up at `over`."""
    return Sent(call.begin.node, call.begin.time, over, closings.after(call))


class Hindered:
    """The faults of a run, by whom they hinder. `servers`: those in everybody's way; `survived`:
    the names of those among them during which the lock promises to be available; `last`: when the
    last fault ended.

    A fault that only concerns clients hinders those, and so does one that separates nothing but
    clients from servers. Any other is in the way of everybody: one of a server, or one whose
    effects are unknown. If the lock promises to survive the failure of a minority (`minority`), a
    fault of servers during which a majority of them is always left is in the way for a lease after
    its begin and after its end only, and so is one that separates clients from servers and leaves a
    majority to each; it hinders none of them. `one_by_one`: clients may ask each server for the
    lock.
    """

    def __init__(
        self,
        on: Iterable[Fault],
        clients: frozenset[str],
        servers: frozenset[str],
        minority: bool,
        one_by_one: bool,
    ) -> None:
        on = list(on)
        self.servers: list[Fault] = []
        self.last = max((fault.end for fault in on if fault.end is not None), default=None)
        mine: dict[str, list[Span]] = {}
        deaf: dict[str, list[Span]] = {}
        uneasy: dict[str, list[Span]] = {}
        cuts: list[tuple[str, Fault]] = []
        between: list[tuple[Fault, frozenset[str]]] = []
        own: list[tuple[Fault, frozenset[str]]] = []
        late: list[Fault] = []
        for fault in on:
            if kills_clients(fault, clients):
                continue  # it ends at once, and dead clients ask for nothing
            only = cut_off(fault, clients)
            nodes = fault.impairs or frozenset(fault.targets)
            of_servers = nodes & servers if servers else nodes - clients
            if only and fault.impairs:
                between.append((fault, only))
            elif fault.impairs is None or of_servers:
                if fault.impairs is None and fault.end is None and not fault.proved:
                    # A node that was lost: it was noticed then, and may have been gone before.
                    fault = replace(fault, start=0)
                self.servers.append(fault)
                late += [] if only else [fault]
            else:
                own.append((fault, fault.impairs))
        self.survived = frozenset[str]()
        if minority and servers:
            cut = [fault for fault, _ in between]
            self.survived = survived(self.servers, cut, clients, servers)
        for fault, only in between:
            if fault.name in self.survived:
                self.servers.append(fault)
                cuts.extend((node, fault) for node in only)
            else:
                own.append((fault, only))
        for fault, whose in own:
            over = _end(fault)
            for node in whose:
                mine.setdefault(node, []).append((fault.start, over))
                uneasy.setdefault(node, []).append((fault.start, over + (over - fault.start)))
                if _drops(fault):
                    # The kernel sends the requests that a stopped client has written.
                    cuts.append((node, fault))
                    deaf.setdefault(node, []).append((fault.start, over))
        self._clients, self._deaf = _by_node(mine), _by_node(deaf)
        self._cut = _Cut(cuts, clients)
        # A message that reaches a minority late keeps no client from a lock that each server gives
        # by itself.
        harmless = self.survived if one_by_one else frozenset()
        left = [row for row in cuts if row[1].name not in harmless]
        self._cut_off = self._cut if len(left) == len(cuts) else _Cut(left, clients)
        self._late = Spans((fault.start, over_with(fault, 0), fault) for fault in late)
        away = [fault for fault in late if fault.impairs != frozenset()]
        self._blocked = Spans((fault.start, _end(fault), fault) for fault in away)
        resent = [one for one in away if _drops(one) and one.name not in self.survived]
        self._resent = Spans((fault.start, _end(fault), fault) for fault in resent)
        self._uneasy = _by_node(uneasy)
        twice = ((one.start, _end(one) + (_end(one) - one.start), one) for one in self.servers)
        self._unrest = Spans(row for row in twice if row[2].impairs != frozenset())
        self.one_by_one = one_by_one
        self._down = over_time(fault for fault in self.servers if fault.impairs != frozenset())

    def met(self, node: str | None, begin: float, over: float) -> list[Span]:
        """Return the spans in which this client is hindered that touch [begin, over], in order."""
        spans = self._clients.get(node)
        return [] if spans is None else spans.touching(begin, over)

    def meets(self, node: str | None, begin: float, over: float) -> bool:
        """Return whether this client is hindered at any time in [begin, over]."""
        spans = self._clients.get(node)
        return spans is not None and spans.count(begin, over) > 0

    def calm(self, node: str | None, begin: float, over: float) -> bool:
        """Return whether no fault of this client or of servers was on, or had ended more recently
        than it was on for."""
        spans = self._uneasy.get(node)
        disturbed = spans is not None and spans.count(begin, over) > 0
        return not (disturbed or self._unrest.count(begin, over))

    def reached(self, call: Call) -> bool:
        """Return whether a call that was answered ok certainly took effect on all servers.

        Its client may have asked several servers one by one. It may then have been content with
        some, if a fault kept one from answering or the client from reaching it.
        """
        if not self.one_by_one:
            return True
        begin, over = call.begin.time, FOREVER if call.end is None else call.end.time
        return not (self._down.count(begin, over) or self.meets(call.begin.node, begin, over))

    def outlasts(self, hold: Hold, over: float, lease: int) -> float:
        """Return by when a hold has certainly ended whose lease ends at `over`, if a fault of its
        client may have prolonged it.

        Without a lease, servers may learn of the end of a client only after a fault. Renewals whose
        answers a fault keeps from the client take effect without its knowledge.
        """
        known = self._clients if hold.furthest == FOREVER else self._deaf if hold.renewals else {}
        spans = known.get(hold.node)
        while spans is not None:
            later = max((end + lease for _, end in spans.touching(hold.start, over)), default=over)
            if later <= over:
                break
            over = later
        return over

    def arrived(self, sent: Sent, delay: float) -> float:
        """Return by when a request has certainly arrived that got no answer. `delay`: how long a
        message travels if nothing holds it back.

        TCP doubles the time between its attempts (RFC 6298, section 5.5), so that a message which
        was under way for some time when a fault ended arrives at most as much later, unless another
        fault is on by then.
        """
        return self._arrived(self._blocked, self._cut, sent, delay)

    def lasts(self, sent: Sent, delay: float, lease: int) -> float:
        """Return until when a lease may run that a request began which got no answer: for `lease`
        after it, or after it has arrived, if a fault held it back."""
        arrived = self.held_back(sent, delay)
        if arrived == sent.over:
            return sent.over + lease
        return self.settled(sent.begin, arrived, lease)

    def leaves(self, sent: Sent, lease: int, delay: float) -> float:
        """Return until when a request that was refused may have left a lease on single servers,
        because a fault of its client or of its messages kept answers or cleaning requests away."""
        lost = self.meets(sent.node, sent.begin, sent.over)
        lost = lost or self.held_back(sent, delay) > sent.over
        return self.lasts(sent, delay, lease) if lost else sent.begin

    def held_back(self, sent: Sent, delay: float) -> float:
        """Return by when such a request has arrived, if a fault held it back that TCP outlasts;
        else when it was given up. A server that stops for a while has the request in its buffer,
        and is in everybody's way until it resumes. So is one that drops messages, unless the lock
        promises to be available without it. The same holds for a cut between a client and single
        servers that it asks by itself."""
        arrived = self._arrived(self._resent, self._cut_off, sent, delay)
        return arrived if arrived > sent.over + delay else sent.over

    def _arrived(self, blocked: Spans[Fault], cut: _Cut, sent: Sent, delay: float) -> float:
        node, over = sent.node, sent.over
        mine = self._clients.get(node)
        # A client that was stopped then may have sent it once it was resumed.
        over = max(over, -FOREVER if mine is None else mine.until(over, over))
        arrived = _delivered(blocked, cut.off.get(node), sent.begin, over, delay)
        if sent.closed == FOREVER or arrived <= sent.over + delay:
            return arrived
        # A client that has closed sends nothing more, and no message waits for the end of a cut
        # that resets its connection.
        over, held = max(sent.over, sent.closed), cut.holds.get(node)
        return min(arrived, _delivered(blocked, held, sent.begin, over, delay))

    def settled(self, begin: float, arrived: float, tail: float) -> float:
        """Return from when on a request sent at `begin`, which had `arrived` by then, cannot hold
        the lock any more. `tail`: how long its lease lasts at most. Servers may begin it again
        after each of their faults."""
        over = arrived + tail
        while (later := self._late.until(begin, over) + tail) > over:
            over = later
        return over


class _Cut:
    """The faults that hold back messages of clients, by client: `off`, while they are on; `holds`,
    while messages of clients that have closed wait for their end."""

    def __init__(self, rows: Iterable[tuple[str, Fault]], clients: frozenset[str]) -> None:
        off: dict[str, list[Span]] = {}
        holds: dict[str, list[Span]] = {}
        for node, fault in rows:
            off.setdefault(node, []).append((fault.start, _end(fault)))
            holds.setdefault(node, []).extend(_holds(fault, clients))
        self.off, self.holds = _by_node(off), _by_node(holds)


def _delivered(
    blocked: Spans[Fault], cut: Spans[Span] | None, begin: float, over: float, delay: float
) -> float:
    """Return by when TCP has delivered a message sent between `begin` and `over`. Faults of servers
    hold it back, and cuts of its client."""
    over += delay
    first: list[float] = [fault.start for fault in blocked.touching(begin, over)[:1]]
    first += [] if cut is None else [start for start, _ in cut.touching(begin, over)[:1]]
    # A message that was sent earlier has arrived before the first fault.
    since = max(begin, min(first, default=begin) - delay)
    while True:
        ended = blocked.until(begin, over)
        if cut is not None:
            ended = max(ended, cut.until(begin, over))
        later = ended + (ended - since) + delay
        if later <= over:
            return over
        over = later


def _holds(fault: Fault, clients: frozenset[str]) -> list[Span]:
    """Return when a cut of clients holds their messages back. One that rejects does so only while
    it is put in place and taken off: then one end may drop a packet that the other would reject. A
    message between servers that was rejected may wait in its server."""
    over = _end(fault)
    if not fault.rejects or fault.surely is None or not cut_off(fault, clients):
        return [(fault.start, over)]
    return [(fault.start, fault.surely[0]), (fault.surely[1], over)]


def _end(fault: Fault) -> float:
    return FOREVER if fault.end is None else fault.end


def _drops(fault: Fault) -> bool:
    """Return whether a fault may keep messages from nodes."""
    return bool(fault.links or fault.loses or fault.links is None)


def _by_node(found: Mapping[str, list[Span]]) -> dict[str | None, Spans[Span]]:
    # Merged, because a client that a thousand faults hinder at a time is hindered once.
    return {node: Spans((*span, span) for span in _merged(spans)) for node, spans in found.items()}


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return the times that the spans cover, as spans that do not touch."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def over_with(fault: Fault, lease: int) -> float:
    """Return when a fault and the leases that it prolonged have ended. A clock that was wrong may
    have prolonged them by as much."""
    if fault.end is None:
        return FOREVER
    return fault.end + lease + _wrong(fault.arguments, fault.end - fault.start)


def _wrong(arguments: Mapping[str, object], lasted: int) -> float:
    offset, rate = arguments.get("offset_s"), arguments.get("rate")
    wrong = abs(offset) * 1e9 if isinstance(offset, int | float) else 0.0
    return wrong + (abs(rate - 1) * lasted if isinstance(rate, int | float) else 0.0)


def prolonged(
    faults: Iterable[Fault], leases: Iterable[tuple[float, float, int]]
) -> dict[str, int]:
    """Return, by the name of each fault, the longest lease that it may have prolonged: of the
    requests and holds (begin, over, ttl) that it met."""
    rows = sorted(leases)
    begins = [begin for begin, _, _ in rows]
    longest = _Longest([ttl for _, _, ttl in rows])
    found: dict[str, int] = {}
    active: list[tuple[int, float]] = []  # the longest lease first
    place = 0
    for fault in sorted(faults, key=lambda fault: fault.start):
        while place < len(rows) and rows[place][0] <= fault.start:
            heappush(active, (-rows[place][2], rows[place][1]))
            place += 1
        while active and active[0][1] < fault.start:
            heappop(active)
        until = FOREVER if fault.end is None else fault.end
        met = longest.of(place, bisect_right(begins, until))
        found[fault.name] = max(met, -active[0][0] if active else 0)
    return found


class _Longest:
    """The longest lease of any stretch of a list, without a scan of the stretch: `_levels[k]` has
    those of all stretches of 2**k."""

    def __init__(self, leases: list[int]) -> None:
        self._levels = [leases]
        while (width := 2 ** (len(self._levels) - 1)) * 2 <= len(leases):
            last = self._levels[-1]
            self._levels.append(list(map(max, last, last[width:])))

    def of(self, begin: int, end: int) -> int:
        """Return the longest of [begin, end); 0 of none."""
        if begin >= end:
            return 0
        level = (end - begin).bit_length() - 1
        leases = self._levels[level]
        return max(leases[begin], leases[end - (1 << level)])
