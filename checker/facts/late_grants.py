"""Grants that a lock handed out although their lease had expired.

A lock that takes longer to acquire than its lease lasts must not call itself granted (antirez 2016,
step 3 of Redlock). The grant's own deadline and its stamp are of one clock, so they show it. These
excuse the lock:

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
from fencepost.checker.history.history import History

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
        and not _assumed(history, hold)
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


def lease_end(hold: Hold) -> float:
    """Return the last deadline that the client knew when its grant arrived."""
    return max((until for since, until in hold.leases if since <= hold.start))


def _assumed(history: History, hold: Hold) -> bool:
    """Return whether its client filled in the deadline of the grant."""
    return history.ops[hold.index].value.get("assumed") is True


def _may_stop(fault: Fault, node: str | None) -> bool:
    """Return whether a fault may stop a client on this node, or change its clock. One that cuts
    links, or acts on messages alone, does not; one with unknown effects may."""
    if fault.impairs is None:
        return True
    hit = node in fault.impairs or node in fault.targets
    return hit and not fault.links and not fault.loses and not fault.only_messages
