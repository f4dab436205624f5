"""Locks that no client could have, and that were not granted although clients asked for them.

Everything is rounded in favour of the lock, by more than the definition asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from fencepost.checker.history.history import Op
from tests.simulated.promises import Asked, asked
from tests.simulated.truth import Held, Truth
from tests.simulated.world import MS, SECOND

_PAUSE = 300 * MS
"""Clients that wait no longer than this between two requests ask without a pause."""
_LOST = 1000 * MS
"""Each span of free time counts as shorter by this."""

Span = tuple[float, float]


def dead(truth: Truth, ops: list[Op]) -> list[str]:
    """Return locks that stayed dead for longer than the bound."""
    plan = truth.plan
    calls = asked(ops)
    end = ops[-1].time if ops else 0
    # A try that failed may leave keys on single servers of a quorum if messages are lost in calm.
    bound = plan.bound + (plan.ttl if plan.way == "quorum" and plan.loss else 0)
    found = []
    for lock, _ in plan.pairs:
        mine = [call for call in calls if call.lock == lock]
        taken = [*_held(truth, lock), *_unheard(truth, mine), *_faults(truth)]
        free = list(_free(taken, end))
        modes = {call.shared for call in mine}
        for shared in modes:
            vain = [call for call in mine if call.type == "fail" and call.shared == shared]
            granted = [
                held.start for held in truth.holds if held.lock == lock and held.shared == shared
            ]
            for stretch in _stretches(truth, vain):
                if _starved(stretch, free, granted, len(modes) > 1) > bound:
                    found.append(lock)
    return found


def _held(truth: Truth, lock: str) -> Iterator[Span]:
    """Yield the spans in which clients may have had the lock."""
    for held in truth.holds:
        if held.lock == lock:
            yield held.asked, _over(held)


def _over(held: Held) -> float:
    told = [deadline for _, deadline in held.told if deadline is not None]
    # An extension or renewal may have been under way, and was not heard of. A client that sees no
    # deadline may renew its lease unseen.
    gone = held.really if held.how in ("death", "close") else inf
    known = max([*told, *(stamp for stamp, _ in held.told)]) if told else gone
    return min([known + 2 * held.ttl, *(answered for _, answered in held.released[:1])])


def _unheard(truth: Truth, calls: list[Asked]) -> Iterator[Span]:
    """Yield the spans in which a request may have been granted, and its client did not hear of it:
    it never did, or a fault kept it."""
    for call in calls:
        if call.type == "info" or _hindered(truth, call, 0):
            yield call.sent, _arrived(truth, call) + 2 * truth.plan.ttl


def _arrived(truth: Truth, call: Asked) -> float:
    """Return by when TCP has delivered a request, whatever faults were on."""
    over: float = call.done + SECOND
    first = [f.start for f in truth.faults if f.start <= over and f.end >= call.sent]
    since = max(call.sent, min(first, default=call.sent) - SECOND)
    while True:
        ends = [f.end for f in truth.faults if f.start <= over and f.end >= call.sent]
        later = max([over, *(end + (end - since) + SECOND for end in ends)])
        if later == over:
            return over if ends else call.done
        over = later


def _hindered(truth: Truth, call: Asked, around: int) -> bool:
    """Return whether a fault hit the client while it asked, or so long before or after."""
    return any(
        call.node in fault.targets
        and fault.start <= call.done + around
        and call.sent <= fault.end + around
        for fault in truth.faults
    )


def _faults(truth: Truth) -> Iterator[Span]:
    """Yield the spans in which servers may not answer."""
    for fault in truth.faults:
        if fault.family == "meteor" or not set(fault.targets) <= set(truth.plan.client_names):
            yield fault.start - SECOND, fault.end + 2 * truth.plan.ttl


def _free(taken: list[Span], end: float) -> Iterator[Span]:
    since = 0.0
    for begin, over in sorted(taken):
        if begin > since:
            yield since, min(begin, end)
        since = max(since, over)
    if since < end:
        yield since, end


def _stretches(truth: Truth, calls: list[Asked]) -> Iterator[Span]:
    """Yield the spans in which unhindered clients asked without a pause."""
    since = until = -inf
    for call in sorted(calls, key=lambda call: call.sent):
        if _hindered(truth, call, SECOND):
            continue
        if call.sent > until + _PAUSE:
            if until > since:
                yield since, until
            since = until = call.sent
        until = max(until, call.done)
    if until > since:
        yield since, until


def _starved(stretch: Span, free: list[Span], granted: list[int], modes: bool) -> float:
    """Return for how long the lock was free while clients asked in a stretch: at once, or, if
    grants of another mode came between, together."""
    longest = total = 0.0
    last = -inf
    for begin, over in free:
        asked = min(over, stretch[1]) - max(begin, stretch[0])
        if any(last <= at <= begin for at in granted):
            total = 0.0
        if asked > _LOST:
            total += asked - _LOST
            longest = max(longest, total if modes else asked - _LOST)
        last = begin
    return longest


def refused_alone(truth: Truth, ops: list[Op]) -> list[Asked]:
    """Return acquires that were refused although no other client had the lock, or asked for it.

    Every earlier hold had been released, and every earlier request was answered.
    """
    if not truth.plan.promises.get("true_refusals"):
        return []
    gap = truth.gap
    calls = asked(ops)
    refused = {
        (op.node, op.time)
        for op in ops
        if op.f == "acquire" and op.type == "fail" and op.error and op.error[0] == "not-granted"
    }
    found = []
    for call in calls:
        if (call.node, call.done) not in refused:
            continue
        others = [one for one in calls if one is not call and one.lock == call.lock]
        alone = all(
            one.sent > call.done + gap or (one.type != "info" and one.done + gap < call.sent)
            for one in others
        )
        holds = [held for held in truth.holds if held.lock == call.lock]
        if alone and all(
            held.asked > call.done + gap
            or (held.released and held.released[0][1] + gap < call.sent)
            for held in holds
        ):
            found.append(call)
    return found


def raised(truth: Truth, ops: list[Op]) -> list[str]:
    """Return the clients that got an error three times after the bound, each time for a lock that
    no other client had or asked for, in a run without faults and without a grant."""
    if truth.faults or truth.holds:
        return []
    calls = asked(ops)
    errors = {
        (op.node, op.time)
        for op in ops
        if op.f == "acquire" and op.type == "info" and op.error and op.error[0] == "raised"
    }
    found = []
    for call in calls:
        others = [one for one in calls if one is not call and one.lock == call.lock]
        alone = all(
            one.sent > call.done + _PAUSE
            or (one.done + (truth.plan.ttl if one.type == "info" else 0) + _PAUSE < call.sent)
            for one in others
        )
        if alone and (call.node, call.done) in errors and call.sent > truth.plan.bound + SECOND:
            found.append(call.node)
    return [node for node in found if found.count(node) > 2]
