"""Whether a defect had an effect that reached clients for certain, so that only false is right.

These are sufficient conditions, narrow enough to leave no doubt; a checker may find more. Sound
runs meet none of them but `late`. Order and availability are in promises.py and dead.py.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

from tests.simulated.plan import DOWN
from tests.simulated.truth import FaultSeen, Held, Read, Truth, Wrote, met_surely, rivals
from tests.simulated.world import MS

LATE = 250 * MS
"""A client may notice as late as this that the lease of its grant has expired."""


def doubled(truth: Truth) -> list[tuple[Held, Held]]:
    """Return holds of which the second was granted within the first one's believed lease."""
    gap = truth.gap
    return [
        (one, other)
        for one, other in rivals(truth)
        if one.start + gap < other.start
        and one.believes(other.start + gap)
        and other.believes(other.start)
        and not one.extending(other.start, gap)
        and not _excused(truth, one, other.start)
    ]


def doubled_in_any_order(truth: Truth) -> list[tuple[Held, Held]]:
    """Return exclusive grants of which the second certainly arrived within the first one's lease.

    The second was requested after the first had arrived, and arrived before the least lease of the
    first, from its request on, can have ended.
    """
    gap = truth.gap
    found = []
    for one, other in rivals(truth):
        deadline = one.told[0][1]
        # The model leaves the second grant to a holder out.
        if one.shared or other.shared or one.again or other.again or deadline is None:
            continue
        least = min(one.asked + one.ttl, deadline, one.surely)
        in_order = one.start + gap < other.asked and other.start + gap < least
        if in_order and not _excused(truth, one, other.start):
            found.append((one, other))
    return found


def _excused(truth: Truth, held: Held, at: float) -> bool:
    """Return whether the service may have ended a hold early, as far as the history can show, or
    nothing shows that it had not ended by itself."""
    plan = truth.plan
    if plan.silent_close or (plan.ends_with != "connection" and not plan.visible):
        return True
    return plan.ends_with == "connection" and any(
        _cuts_off(truth, held.node, fault) and fault.start <= at + truth.gap
        for fault in truth.faults
    )


def _cuts_off(truth: Truth, node: str, fault: FaultSeen) -> bool:
    """Return whether a fault may end a client's connection: it cuts it, loses messages of either
    end, or takes a server away."""
    others = not set(fault.targets) <= set(truth.plan.client_names)
    match fault.family:
        case "meteor":
            return True
        case "packet":
            return node in fault.targets or others
        case family if family in DOWN:
            return others
    return any(node in link for link in fault.links)


def doubled_again(truth: Truth) -> list[tuple[Held, Held]]:
    """Return holds of which the first was lost, and believed again while the second was on: by an
    extension or renewal that came after its deadline."""
    gap = truth.gap
    return [
        (one, other)
        for one, other in rivals(truth)
        for (_, before), (stamp, after) in pairwise(one.told)
        if before is not None
        and after is not None
        and before + gap < stamp
        and one.believes(stamp + gap)
        and other.start + gap < stamp
        and other.believes(stamp + gap)
        and not other.extending(stamp, gap)
        and not _excused(truth, other, stamp)
    ]


def extended_lost(truth: Truth) -> list[tuple[Held, Held]]:
    """Return holds whose extension was answered ok after the lock had been granted to another."""
    gap = truth.gap
    return [
        (one, other)
        for one, other in rivals(truth)
        if not other.shared and not one.shared and one.start + gap < other.asked
        if not other.again and not one.again
        if any(other.start + gap < sent for sent, _ in one.extended)
    ]


def tokens_repeated(truth: Truth) -> list[tuple[Held, Held]]:
    """Return grants with equal tokens, or with a lower one for a surely later request."""
    gap = truth.gap
    found = []
    for one, other in rivals(truth):
        if one.token is None or other.token is None or one.again or other.again:
            continue
        fallen = one.start + gap < other.asked and other.token < one.token
        if fallen or one.token == other.token:
            found.append((one, other))
    return found


def tokens_fell(truth: Truth) -> list[tuple[Held, Held]]:
    """Return exclusive grants that were certainly given one after the other, with falling tokens.

    The first was answered before the second. Had it been given after the second, the lease of the
    second would have ended before: but it ran at least from its request on.
    """
    gap = truth.gap
    found = []
    for one, other in rivals(truth):
        deadline = other.told[0][1]
        if one.shared or other.shared or None in (one.token, other.token, deadline):
            continue
        if one.again or other.again:
            continue
        least = min(other.asked + other.ttl, deadline)  # type: ignore[type-var]
        ordered = one.start + gap < other.start and one.start + gap < least  # type: ignore[operator]
        if ordered and other.token < one.token and not _excused(truth, other, one.start):  # type: ignore[operator]
            found.append((one, other))
    return found


def stolen(truth: Truth) -> list[tuple[Held, Held]]:
    """Return (thief, victim) for each release that certainly ended another client's hold.

    The thief's own hold had ended before the victim asked for the lock. The release was answered ok
    once the victim had the lock, and a third client was granted it after that, while the victim's
    lease still ran. No earlier fault could have made the service forget it.
    """
    gap = truth.gap
    if any(_forgets(fault) for fault in truth.faults):
        return []
    found = []
    for thief, victim in rivals(truth):
        for number, (sent, answered) in enumerate(thief.released):
            over = thief.deadline(sent)
            if number:
                over = min(over, thief.released[0][1])
            if thief.how != "release" and thief.really < inf:
                over = min(over, thief.surely)
            late = over + gap < victim.asked and victim.start + gap < answered
            if not late:
                continue
            thirds = [
                third.start
                for third, other in rivals(truth)
                if other is victim and victim.believes(third.start + gap)
            ]
            # None of them before the release: otherwise the hold had ended already.
            if thirds and min(thirds) > answered + gap:
                found.append((thief, victim))
    return [pair for pair in found if not _excused(truth, pair[1], inf)]


def late(truth: Truth) -> list[Held]:
    """Return the grants that a lock handed out although their lease had expired.

    They came later than their own deadline by more than a client may take to notice it, no fault
    had stopped or skewed the client, and nothing renews the lease.
    """
    if truth.plan.ends_with != "lease" or truth.plan.watchdog:
        return []
    return [
        held
        for held in truth.holds
        for deadline in [held.told[0][1]]
        if deadline is not None and deadline + LATE <= held.start
        if not any(
            fault.start <= held.start and deadline <= fault.end and _stops(held.node, fault)
            for fault in truth.faults
        )
    ]


def _stops(node: str, fault: FaultSeen) -> bool:
    return fault.family == "meteor" or (
        node in fault.targets and fault.family not in ("partition", "delay", "packet")
    )


def late_and_met(truth: Truth) -> list[tuple[Held, Held]]:
    """Return two that certainly held a lock at once, of which one was handed out late."""
    handed = late(truth)
    return [pair for pair in met_surely(truth) if pair[0] in handed or pair[1] in handed]


def released_late(truth: Truth) -> bool:
    """Return whether any release was answered ok when its own hold had ended."""
    return any(
        held.deadline(sent) <= answered + truth.gap
        or held.how not in ("release", "")
        or sent != held.released[0][0]
        for held in truth.holds
        for sent, answered in held.released
    )


def _forgets(fault: FaultSeen) -> bool:
    return fault.family not in ("partition", "delay", "packet", "pause", "cpu", "disk")


def lost_updates(truth: Truth) -> list[tuple[Wrote, Any]]:
    """Return acknowledged writes with a later read or write that shows an older version."""
    gap = truth.gap
    found: list[tuple[Wrote, Any]] = []
    for write in truth.writes:
        for read in truth.reads:
            same = read.resource == write.resource and write.done + gap < read.sent
            if same and read.version < write.stored:
                found.append((write, read))
        for other in truth.writes:
            same = other.resource == write.resource and write.done + gap < other.sent
            if same and other.stored <= write.stored:
                found.append((write, other))
    return found


def refused_and_shown(truth: Truth) -> list[Read]:
    return [read for read in truth.reads if (read.resource, read.value) in truth.refusals]
