"""Holds that certainly ended early.

The lease of a hold still runs, and neither its holder nor the service may have ended it, yet an op
proves it gone: its own holder is refused (`not-held`), or another process is granted the lock. Two
shared holds may coexist, so one proves nothing about the other. A second grant to the same process
proves nothing either, since the lock may be reentrant. The same holds for a grant by servers of
which none had granted the hold. If a client sees no deadline, its lease is certain for its ttl,
counted from the request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.hold_events import HoldEvents, ends, refusal
from fencepost.checker.facts.holds import FOREVER, Hold
from fencepost.checker.history.history import Call, History, Op


@dataclass(frozen=True)
class Loss:
    """`shown` is the first op that proves `hold` gone, `how` describes it.

    asked, granted: the invocation of the hold's acquire, and its answer. outlived: the invocation
    of the last request that proves that it was not gone before: an extend that was answered ok,
    else its acquire.
    """

    hold: Hold
    shown: Op
    how: str
    asked: Op
    granted: Op
    outlived: Op


def losses(
    history: History, test: Mapping[str, Any], found: Sequence[Hold], events: HoldEvents
) -> Iterator[Loss]:
    """Return the holds that certainly ended early, in order of grant."""
    ops = history.ops
    clocks = Clocks(test)
    locks: dict[str, list[Hold]] = {}
    for hold in found:
        locks.setdefault(hold.lock, []).append(hold)
    rivals = {lock: _Rivals(mine, ops, clocks) for lock, mine in locks.items()}
    for hold in found:
        proofs = []
        refused = _refused(hold, events, test)
        if refused is not None:
            proofs.append((refused, f"its own {refused.f} was refused"))
        other = rivals[hold.lock].granted_in(hold)
        if other is not None:
            how = f"{other.who} was granted hold {other.name}"
            proofs.append((ops[other.index], how))
        if proofs:
            shown, how = min(proofs, key=lambda proof: proof[0].index)
            asked, granted = ops[hold.asked_index], ops[hold.index]
            outlived = _extended(events.own.get(hold.index, ()), shown, clocks) or asked
            yield Loss(hold, shown, how, asked, granted, outlived)


def _extended(calls: Sequence[Call], shown: Op, clocks: Clocks) -> Op | None:
    """Return the invocation of the last extend that was answered ok, of those that were not sent
    after the loss had been shown."""
    for call in reversed(calls):
        extended = call.begin.f == "extend" and call.type == "ok"
        if extended and not clocks.before(shown, call.begin):
            return call.begin
    return None


def _refused(hold: Hold, events: HoldEvents, test: Mapping[str, Any]) -> Op | None:
    """Return the answer that refused the holder while its lease ran, before the hold was released,
    reported lost, or possibly ended by the service."""
    lost = events.lost.get(hold.index)
    for call in events.own.get(hold.index, ()):
        end = refusal(call)
        if end is not None:
            runs = any(since <= call.begin.time and end.time < to for since, to in leased(hold))
            reported = lost is not None and lost.index < end.index
            over = call.begin.time > hold.given_back or end.time >= hold.may_end
            if runs and not reported and not over:
                return end
        if ends(call, test):
            return None
    return None


def leased(hold: Hold) -> Sequence[tuple[float, float]]:
    """Return the leases of a hold, as far as they are certain."""
    if hold.leases[-1][1] < FOREVER or hold.ttl is None:
        return hold.leases
    # Of a later lease, its begin is known and not its request.
    known = [(since, until) for since, until in hold.leases if until < FOREVER]
    since, until = hold.leases[0]
    if until == FOREVER and hold.asked + hold.ttl > since:
        known.insert(0, (since, hold.asked + hold.ttl))
    return known


def _believed(hold: Hold) -> list[tuple[float, float]]:
    """Return the leases of a hold as far as they are certain, cut off like `Hold.believed`."""
    over = min(hold.given_back, hold.may_end)
    return [(start, min(end, over)) for start, end in leased(hold) if start < end and start <= over]


class _Rivals:
    """The grants of one lock in order of answers; finds one that conflicts with another."""

    def __init__(self, found: Sequence[Hold], ops: Sequence[Op], clocks: Clocks) -> None:
        self._ops = ops
        self._clocks = clocks
        self._all = list(found)
        self._exclusive = [hold for hold in found if not hold.shared]
        self._starts = {
            shared: [hold.start for hold in row]
            for shared, row in ((False, self._all), (True, self._exclusive))
        }

    def granted_in(self, hold: Hold) -> Hold | None:
        """Return the first conflicting grant to another process that was answered while this hold
        was believed, and certainly not given before it."""
        row = self._exclusive if hold.shared else self._all
        for since, until in _believed(hold):
            place = bisect_left(self._starts[hold.shared], since)
            while place < len(row) and row[place].start < until:
                other = row[place]
                place += 1
                gap = self._clocks.between(hold.node, other.node)
                if other.process == hold.process or other.start + gap >= until:
                    continue
                if self._follows(other, hold, since, gap):
                    return other
        return None

    def _follows(self, other: Hold, hold: Hold, since: float, gap: int) -> bool:
        """Return whether `other` was granted after this lease began at `since`.

        A grant may be answered so late that its lease has expired: it may have come before. But if
        its lease still ran when the other hold was granted, one of the two ended the other.
        """
        first = since == hold.start
        if other.index < hold.index:
            return False
        if hold.granted_by and other.granted_by and not {*hold.granted_by} & {*other.granted_by}:
            return False
        if hold.token is not None and other.token is not None and hold.token != other.token:
            if other.token < hold.token:
                return False
            if first:
                return True
        if not first:
            return since + gap < other.asked
        if since + gap < other.leases[0][1] < FOREVER:
            return True
        return self._clocks.before(self._ops[hold.index], self._ops[other.asked_index])
