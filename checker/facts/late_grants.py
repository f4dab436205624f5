"""Grants and extensions that a lock handed out although their lease had expired.

A lock that takes longer to acquire than its lease lasts must not call itself granted (antirez 2016,
step 3 of Redlock), and one that takes longer to extend must not call itself extended. The answer's
own deadline and its stamp are of one clock, so they show it. These excuse the lock:

- It named no deadline: its client filled it in.
- It had reported the loss before.
- Its lease is a session, or is renewed in the background. Then the deadline is that of the last
  answer, and the next one proves a later deadline.
- Something may have stopped the client between the lock's look at its clock and the stamp: a fault
  at its node, or a machine so busy that it ran late by up to `_MARGIN_NS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.checker.facts.ends import ends_with
from fencepost.checker.facts.faults import Fault, FaultsOfNodes, faults
from fencepost.checker.facts.holds import Hold
from fencepost.checker.history.history import History, Op

_MARGIN_NS = 250_000_000


def late_grants(history: History, test: Mapping[str, Any], found: Sequence[Hold]) -> list[Hold]:
    """Return the holds that were granted later than their own deadline, without an excuse."""
    if ends_with(test) != "lease":
        return []
    late = [
        hold
        for hold in found
        if hold.start - lease_end(hold) >= _MARGIN_NS
        and not hold.renewals
        and not _assumed(history.ops[hold.index])
    ]
    if not late:
        return []
    reported: dict[int | str, list[int]] = {}
    for op in history.lost():
        reported.setdefault(op.process, []).append(op.index)
    stops = FaultsOfNodes(faults(history), _may_stop)
    return [
        hold
        for hold in late
        if not any(hold.asked_index < n < hold.index for n in reported.get(hold.process, ()))
        and not stops.of(hold.node).count(lease_end(hold), hold.start)
    ]


def late_extends(
    history: History, test: Mapping[str, Any], found: Sequence[Hold]
) -> list[tuple[Hold, Op]]:
    """Return the extends that were answered ok later than the deadline that they answered, with
    their holds, without an excuse."""
    if ends_with(test) != "lease":
        return []
    late = [
        (hold, op)
        for hold in found
        if not hold.renewals
        for op in (history.ops[index] for index in hold.extends)
        if _late_by(op) >= _MARGIN_NS and not _assumed(op) and op.time <= hold.lost
    ]
    if not late:
        return []
    stops = FaultsOfNodes(faults(history), _may_stop)
    return [
        (hold, op)
        for hold, op in late
        if not stops.of(op.node).count(op.time - _late_by(op), op.time)
    ]


def _late_by(op: Op) -> int:
    """Return by how much an extend was answered later than its deadline; negative if it was not,
    or names none."""
    deadline = op.value.get("deadline")
    return -1 if deadline is None else op.time - int(deadline)


def lease_end(hold: Hold) -> float:
    """Return the last deadline that the client knew when its grant arrived."""
    return max((until for since, until in hold.leases if since <= hold.start))


def _assumed(op: Op) -> bool:
    """Return whether its client filled in the deadline that an answer gives."""
    return op.value.get("assumed") is True


def _may_stop(fault: Fault, node: str | None) -> bool:
    """Return whether a fault may stop a client on this node, or change its clock. One that cuts
    links, or acts on messages alone, does not; one with unknown effects may."""
    if fault.impairs is None:
        return True
    hit = node in fault.impairs or node in fault.targets
    return hit and not fault.links and not fault.loses and not fault.only_messages
