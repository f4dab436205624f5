"""Why did a holder still hold, or work, when its lease may have expired?

Of all faults only one that stops a process is known to hold its client up for as long as it lasts.
So only such a fault is a sure cause, and only if it was certainly active when the lease expired and
for nearly all the time from then on. Any other fault that was active then is a likely cause, unless
the client began another op meanwhile: it was not held up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.ends import DEAD
from fencepost.checker.facts.faults import Fault, FaultsOfNodes, faults
from fencepost.checker.facts.holds import FOREVER, Hold, holds, seconds
from fencepost.checker.facts.late_grants import late_grants
from fencepost.checker.history.history import History
from fencepost.checker.why.link import Link, client, lasting, length

MOST = 3
"""Largest number of faults named as possible causes."""
NEAR = 50
"""Largest number of faults that are considered, the latest ones: far more than a nemesis ever keeps
active on one node."""
_WAKING = 10
"""A stopped client needs up to this part of its delay to act again."""
_RENEWALS = 2
"""A leader renews its lease this many times in its length, or more often."""
_ENDINGS = ("release", "close")
"""Ops by which a client gives its hold up."""


@dataclass(frozen=True)
class Until:
    """The moment to explain: at `at` the holder had not given up its hold, or still wrote under it.

    begun: when the client acted, if that was before: it sent the write that was accepted by `at`.
    certain: whether the hold had certainly ended by its own client's lease then. Times in ns.
    """

    at: float
    begun: float = FOREVER
    certain: bool = True

    def acted(self, over: float) -> float:
        """Return when the client acted, after the end `over` of its lease."""
        return self.begun if over < self.begun < self.at else self.at

    def in_flight(self, over: float) -> bool:
        """Return whether the client had acted before its lease expired."""
        return self.begun <= over


@dataclass
class _Events:
    """The times at which each process began an op other than one that gives up its hold, and at
    which it wrote any event, in order."""

    begun: dict[int | str, list[int]] = field(default_factory=dict)
    written: dict[int | str, list[int]] = field(default_factory=dict)


class Keeping:
    """Finds why holders kept their holds."""

    def __init__(self, history: History, test: Mapping[str, Any], clocks: Clocks) -> None:
        self._history, self._test, self._clocks = history, test, clocks
        self._keep = FaultsOfNodes(faults(history), keeps)
        self._elects = bool((test.get("lock") or {}).get("elector"))
        self._late: frozenset[int] | None = None
        self._seen: _Events | None = None

    def links(self, hold: Hold, until: Until) -> list[Link]:
        """Return why `hold` was not given up by then, when its lease may have expired."""
        over = lease_end(hold, until.at)
        if arrived_expired(hold, until.at):
            return self.expired_grant(hold)
        found: list[Link] = []
        if over <= until.at:
            what = f"The lease of hold {hold.name} expired at {seconds(over)}"
            found.append(Link("lease-over", what, over))
        active = list(self._faults(hold, over, until))
        found += [_kept(hold, fault, sure) for fault, sure in active[:MOST]]
        if not active and over <= until.at:
            late = length(until.acted(over) - over)
            what = f"No fault explains why {hold.who} had not given it up {late} later"
            short = "its holder kept it past its lease"
            found.append(Link("kept-on", what, over, nodes=client(hold), short=short))
        return found

    def expired_grant(self, hold: Hold) -> list[Link]:
        """Return why a hold whose lease had expired when its grant arrived was held at all.

        It is the lock's mistake, and no client's, unless late_grants.py excuses it.
        """
        if self._late is None:
            found = holds(self._history, self._test)
            late = late_grants(self._history, self._test, found)
            self._late = frozenset(each.index for each in late)
        over = hold.leases[0][1]
        lease = f"The lease of hold {hold.name}{', counted from the call,' if hold.assumed else ''}"
        link = Link(
            "expired-grant",
            f"{lease} had expired at {seconds(over)}, before the library handed out its grant at "
            f"{seconds(hold.start)}",
            over,
            sure=hold.index in self._late,
            nodes=client(hold),
            short="it was granted when its lease had expired",
        )
        slow = self.near(hold, hold.asked, hold.start)
        return [link, *(answered_late("expired-grant", hold, fault) for fault in slow[:MOST])]

    def near(self, hold: Hold, start: float, end: float) -> list[Fault]:
        """Return the latest faults between these times that may keep the hold's client, in order of
        their start."""
        return self._keep.of(hold.node).latest(start, end, NEAR)

    def _faults(self, hold: Hold, over: float, until: Until) -> Iterator[tuple[Fault, bool]]:
        """Yield the faults that may have kept the holder, and whether each certainly did."""
        if over > until.at:  # no lease that its client sees: the end may have been at any time
            near = self.near(hold, hold.asked, until.at)
            active = [fault for fault in near if _end(fault) >= until.at]
            found = self._unrenewed(hold, near, until.at) or active or near[-1:]
            yield from ((fault, False) for fault in found)
            return
        acted = until.acted(over)
        near = self.near(hold, over, acted)
        stops = [fault for fault in near if _stopped(hold, fault)]
        others = [
            fault for fault in near if fault not in stops and self._held_up(hold, fault, over)
        ]
        found = [fault for fault in [*stops, *others] if _lasted(fault, over, acted)]
        # A message that was on its way may have been late by another fault than the stop.
        alone = until.certain and not (until.in_flight(over) and others)
        for fault in sorted(found, key=lambda fault: fault.start):
            yield fault, alone and fault in stops and self._covers(hold, fault, over, acted)

    def _unrenewed(self, leader: Hold, near: list[Fault], at: float) -> list[Fault]:
        """Return the faults that may have kept a leader from renewing its lease, if another one
        leads from `at` on: its last renewal is older than a lease."""
        if not self._elects or leader.ttl is None:
            return []
        since = at - leader.ttl
        by = since + leader.ttl / _RENEWALS
        return [fault for fault in near if fault.start <= by and _end(fault) >= since]

    def _covers(self, hold: Hold, stop: Fault, over: float, acted: float) -> bool:
        """Return whether a stop was certainly active when the lease expired, and nearly until the
        client acted."""
        if stop.surely is None:
            return False
        bound = self._clocks.bound(hold.node)
        since, end = stop.surely[0] + bound, stop.surely[1] - bound
        if since > over or (acted - end) * _WAKING > acted - over:
            return False
        # A process that wrote meanwhile had been resumed, or is another one than was stopped.
        written = self._events().written.get(hold.process, [])
        return bisect_right(written, since) >= bisect_left(written, end)

    def _held_up(self, hold: Hold, fault: Fault, over: float) -> bool:
        """Return whether a client began no op under its expired lease while a fault was active.

        A lease that was to be renewed is different: its client works on while the fault keeps the
        renewal away.
        """
        if hold.renewals or hold.extends:
            return True
        begun = self._events().begun.get(hold.process, [])
        place = bisect_right(begun, max(over, fault.start))
        return place == len(begun) or begun[place] > min(_end(fault), hold.strict_end)

    def _events(self) -> _Events:
        if self._seen is None:
            self._seen = _Events()
            for op in self._history.clients():
                if op.type == "invoke" and op.f not in _ENDINGS:
                    self._seen.begun.setdefault(op.process, []).append(op.time)
                if not (op.type == "info" and op.error and op.error[0] in DEAD):
                    self._seen.written.setdefault(op.process, []).append(op.time)
        return self._seen


def _stopped(hold: Hold, fault: Fault) -> bool:
    """Return whether a fault stopped the holder's process: its receipt may name another one of the
    node."""
    named = {receipt["process"] for receipt in fault.receipts if "process" in receipt}
    return hold.node in fault.stops and (not named or hold.process in named)


def keeps(fault: Fault, node: str | None) -> bool:
    """Return whether a fault stops a client or disrupts its communication. One of unknown effect
    that names no target may have struck any node."""
    if node is None:
        return False
    if fault.impairs is None and not fault.targets:
        return True
    impaired = fault.targets if fault.impairs is None else fault.impairs
    return node in impaired or any(node in link for link in fault.links or ())


def lease_end(hold: Hold, at: float) -> float:
    """Return when the lease that ran before that time ended."""
    return max((end for start, end in hold.leases if start <= at), default=hold.deadline)


def arrived_expired(hold: Hold, at: float) -> bool:
    """Return whether the lease had expired when the grant arrived, and was not renewed by `at`."""
    return lease_end(hold, at) <= hold.start


def answered_late(sort: str, hold: Hold, fault: Fault) -> Link:
    """Return the fault by which the answer to an acquire may have been late."""
    return Link(
        sort,  # type: ignore[arg-type]
        f"The answer may have been late because of a fault: {lasting(fault)}",
        fault.start,
        sure=False,
        family=fault.family,
        nodes=client(hold),
    )


def _kept(hold: Hold, fault: Fault, sure: bool) -> Link:
    kept = "This kept" if sure else "This may have kept"
    return Link(
        "kept-by-fault",
        f"{kept} {hold.node} from giving it up: {lasting(fault)}",
        fault.start,
        sure=sure,
        family=fault.family,
        nodes=client(hold),
        short=fault.what if sure else f"likely: {fault.what}",
    )


def _lasted(fault: Fault, over: float, acted: float) -> bool:
    """Return whether a fault was active when the lease expired, or for most of the time since."""
    since, end = max(fault.start, over), min(_end(fault), acted)
    return fault.start <= over or (end - since) * 2 > acted - over


def _end(fault: Fault) -> float:
    return FOREVER if fault.end is None else fault.end
