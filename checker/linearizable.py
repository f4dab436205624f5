"""`linearizable`: does the history of acquire, extend and release fit the lease-mutex model?

The strictest check of the lock service, and the only one that also uses ops that failed or never
returned: lincheck looks for one order of all ops, each within its interval, in which no grant is
given while another may still be valid, and each token exceeds those before it. In that model a
refused release ends its hold; given_up_early.py tells of a lock that refuses most of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import structs

from fencepost.checker import lincheck
from fencepost.checker.checker import Checker, Test, of_history
from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.ends import FOREVER, ends_with
from fencepost.checker.facts.faults import during, faults, over_time
from fencepost.checker.facts.given_up_early import given_up_early
from fencepost.checker.facts.grant_events import refused, unsent
from fencepost.checker.facts.hold_events import trusted_hold_events
from fencepost.checker.facts.holds import Hold, holds, lock_of, seconds
from fencepost.checker.facts.second_grants import until
from fencepost.checker.facts.untested import untested
from fencepost.checker.history.history import LOCK_OPS, Call, History, Op
from fencepost.checker.lincheck import Evidence, named
from fencepost.checker.lincheck.budget import Budget
from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.verdict import check_calls
from fencepost.checker.signs import (
    GRANTED_EARLY,
    GRANTED_LATE,
    REFUSED_HOLDER,
    TOKEN_FELL,
    any_of,
)
from fencepost.checker.verdict import Verdict, count, noted

REQUEUED = "requeued"
"""The error kind of `lost` for a client that may have lost only its place in a queue."""

_TIME_LIMIT_S = 60.0
_EVIDENCE_S = 5.0

_MEMORY_MB = 1000.0
"""Limit of the search's memory, many times that of a search which ends."""

_NO_MODEL = "There is no model of shared holds with leases."

_MORE_NS = 200_000
"""Additional time for each call, so that long histories have enough."""


def linearizable(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that the lock's ops linearize against lease-mutex, each lock by itself."""
    failed, clocks = str(test.get("failed_release", "ended")), Clocks(test)
    granted = holds(history, test)
    again = _again(granted)
    called = [call for call in _granted_early(history) if call.begin.f in LOCK_OPS]
    without = {
        lock_of(call.begin.value) for call in called if call.begin.value.get("mode") == "shared"
    }
    owners = _owners(called)
    called = [call for call in called if lock_of(call.begin.value) not in without]
    calls = list(_of_the_model(called, again, owners, failed == "nothing"))
    grants = [call for call in calls if call.begin.f == "acquire" and call.type == "ok"]
    if not grants and not without:
        return Verdict("unknown", "The lock was never granted: nothing was tested.")
    if not grants:
        return Verdict("unknown", _NO_MODEL)
    # Releases that failed without an effect are left out already.
    model = named("lease-mutex", failed_release="ended")
    vague = bool(clocks) or _tied(calls)
    if vague:
        model = _by_call(model, calls)
    sessions = ends_with(test) != "lease"
    ordered = _called(calls, granted, clocks, vague, sessions)
    limit_s = _TIME_LIMIT_S + len(calls) * _MORE_NS / 1e9
    found = check_calls(ordered, model, Budget.starting_now(limit_s, _MEMORY_MB))
    details: dict[str, Any] = {
        "model": "lease-mutex",
        "operations": found.operations,
        "failed_release": failed,
        "ends_with": ends_with(test),
    }
    if found.valid is not False:
        counted = [h for h in granted if h.index not in again and h.lock not in without]
        own = trusted_hold_events(history, test, clocks)
        if early := given_up_early(history, counted, own, clocks):
            return Verdict(False, early[0]["what"], early, details)
    if found.valid is True and without:
        return Verdict("unknown", _NO_MODEL, [], details)
    if found.valid is True:
        missing = details["untested"] = _untested(history, grants, len(again))
        words = f"{found.operations} ops of the lock fit one order that respects every lease."
        return Verdict(True, noted(words, missing), [], details)
    if found.valid == "unknown":
        return Verdict("unknown", f"The search was stopped: {found.reason}.", [], details)
    # Without a total order of one process' ops, no sub-history shows the failure alone.
    evidence = None if vague else found.evidence(_EVIDENCE_S, _MEMORY_MB)
    if evidence is None or evidence.failed is None:
        near = found.failed or found.near
        assert near is not None, "the general engine fails at an op"
        return _unplaced(history, details, near)
    return _invalid(history, evidence, details, evidence.failed)


def _again(granted: list[Hold]) -> dict[int, Hold]:
    """Return the holds that a process was granted while it had one, by the grant's position.

    A reentrant lock gives them. The model has one hold of a process, so that the first one stands
    for all.
    """
    found: dict[int, Hold] = {}
    last: dict[tuple[str, int | str], Hold] = {}
    for hold in granted:
        mine = hold.lock, hold.process
        first = last.get(mine)
        if first is not None and until(first) > hold.asked:
            found[hold.index] = hold
        else:
            last[mine] = hold
    return found


def _owners(calls: list[Call]) -> dict[Any, set[int | str]]:
    """Return the processes that were granted holds, by the names of these."""
    owners: dict[Any, set[int | str]] = {}
    for call in calls:
        if call.begin.f == "acquire" and call.type == "ok" and call.get("hold") is not None:
            owners.setdefault(call.get("hold"), set()).add(call.begin.process)
    return owners


def _of_the_model(
    calls: list[Call],
    again: Mapping[int, Hold],
    owners: Mapping[Any, set[int | str]],
    keeps_on: bool,
) -> Iterator[Call]:
    """Yield the calls that the model has.

    Left out are second grants to a holder, with what concerns them; releases of a hold that only
    other processes have (`owners`), which `ownership` judges; releases that certainly had no
    effect: refused as `unreachable`, or failed where a failed release ends nothing (`keeps_on`),
    but for those refused because the hold had ended; and releases of a hold that the service has
    released before: they change nothing, whatever the answer.
    """
    nested = {(hold.process, hold.name) for hold in again.values()}
    over: set[tuple[int | str, str, Any]] = set()
    for call in calls:
        begin, end = call.begin, call.end
        name = call.get("hold")
        if end is not None and (end.index in again or (begin.process, str(name)) in nested):
            continue
        hold = begin.process, lock_of(begin.value), name
        if begin.f == "acquire" and call.type != "fail":
            over.discard((*hold[:2], None))
        if begin.f == "release":
            foreign = begin.process not in owners.get(name, (begin.process,))
            if foreign or hold in over:
                continue
            if call.type == "ok":
                over.add(hold)
            elif call.type == "fail" and not refused(call) and (keeps_on or unsent(call)):
                continue
        yield call


def _tied(calls: list[Call]) -> bool:
    """Return whether an answer and a later invocation of another process have one stamp, which does
    not order them."""
    answered: dict[int, list[Op]] = {}
    for call in calls:
        if call.end is not None:
            answered.setdefault(call.end.time, []).append(call.end)
    return any(
        end.index < call.begin.index and end.process != call.begin.process
        for call in calls
        for end in answered.get(call.begin.time, ())
    )


def _untested(history: History, grants: list[Call], again: int) -> list[str]:
    blind = all(call.get("deadline") is None and "ttl" in call.value for call in grants)
    found = untested(history, sees_lease=not blind)
    return found + ([f"{count(again, 'second grant')} to a holder"] if again else [])


def _invalid(
    history: History, evidence: Evidence, details: dict[str, Any], failed: Operation
) -> Verdict:
    op = history.ops[failed.line]
    what = (
        f"{op.node or 'a client'} (process {op.process}): {_described(op)}, invoked at "
        f"{seconds(op.time)}, is not linearizable: no order of the lock's operations that respects "
        f"every lease can contain it{f': {evidence.why}' if evidence.why else ''}."
        f"{during(over_time(faults(history)), op.time, failed.ended or op.time)}"
    )
    small = evidence.small.operations if evidence.small else (failed,)
    row = {"what": what, "time_ns": op.time, "ops": sorted(part.line for part in small)}
    return Verdict(False, what, [row], details)


def _unplaced(history: History, details: dict[str, Any], near: Operation) -> Verdict:
    """Return the verdict if the first op that cannot be placed is unknown."""
    op = history.ops[near.line]
    what = (
        "The lock's ops are not linearizable: no order respects every lease. The search got no "
        f"further than {seconds(op.time)}."
    )
    return Verdict(False, what, [{"what": what, "time_ns": op.time, "ops": [near.line]}], details)


def _described(op: Op) -> str:
    hold = op.value.get("hold")
    return op.f if hold is None else f"{op.f} of hold {hold}"


def _granted_early(history: History) -> list[Call]:
    """Return the calls, with the end of some grants brought forward. If the service ended a
    client's lease while it waited (`lost` with hold null), a grant to it must have happened before
    that. A client that asked again by itself (REQUEUED) is judged by its second request."""
    notices: dict[int | str, list[Op]] = {}
    for op in history.lost():
        if op.value.get("hold") is None and (op.error or [""])[0] != REQUEUED:
            notices.setdefault(op.process, []).append(op)
    calls = history.calls()
    return [_before(call, notices) for call in calls] if notices else calls


def _before(call: Call, notices: Mapping[int | str, list[Op]]) -> Call:
    """Return the call; if it is a grant, answered no later than the first of these since it was
    asked."""
    end = call.end
    if call.begin.f != "acquire" or end is None or end.type != "ok":
        return call
    lost = notices.get(call.begin.process, [])
    place = bisect_left(lost, call.begin.index, key=attrgetter("index"))
    if place == len(lost) or lost[place].index >= end.index:
        return call
    return Call(call.begin, structs.replace(end, time=lost[place].time, index=lost[place].index))


def _called(
    calls: list[Call], granted: list[Hold], clocks: Clocks, vague: bool, sessions: bool
) -> Iterator[lincheck.Call]:
    """Yield the calls in lincheck's form, in the order of their completion.

    `vague`: clocks are known only to a bound, or equal stamps order nothing. Then each op gets the
    widest possible interval. Ops of one process may overlap by that, so each gets its own process
    number. `sessions`: a grant lasts as long as its client's session.
    """
    by_asked = {hold.asked_index: hold for hold in granted}
    by_extend = {extend: hold for hold in granted for extend in hold.extends}
    places = _places(calls, clocks) if vague else {}
    completed = [(call.end.index, call) for call in calls if call.end is not None]
    completed.sort(key=(lambda row: places[row[0]]) if vague else itemgetter(0))
    for _, call in completed + [(0, call) for call in calls if call.end is None]:
        begin, end = call.begin, call.end
        hold = by_asked.get(begin.index)
        if hold is None and end is not None:
            hold = by_extend.get(end.index)
        if end is not None and end.type == "info":
            end = None
        bound = clocks.bound(begin.node)
        process = begin.index if vague else begin.process
        value = begin.value if hold is None else begin.value | _lease(call, hold, sessions)
        if value.get("ttl") is not None:
            value = value | {"ttl": max(0, int(value["ttl"]))}
        invoked, time, line = places.get(begin.index, begin.index), begin.time - bound, begin.index
        kind: str = "info"
        result: Any = lincheck.UNKNOWN
        returned = ended = None
        if end is not None:
            kind, result = end.type, end.value
            returned, ended = places.get(end.index, end.index), end.time + bound
        # Positional arguments, because keywords take twice the time.
        yield lincheck.Call(
            process, begin.f, kind, value, result, invoked, returned, time, ended, line
        )


def _places(calls: list[Call], clocks: Clocks) -> dict[int, int]:
    """Return the positions of the calls' ops, by their indices, in an order that their clocks
    allow. Of equal times, invocations come first."""
    rows = []
    for call in calls:
        bound = clocks.bound(call.begin.node)
        rows.append((call.begin.time - bound, False, call.begin.index))
        if call.end is not None:
            rows.append((call.end.time + bound, True, call.end.index))
    return {index: place for place, (_, _, index) in enumerate(sorted(rows))}


def _lease(call: Call, hold: Hold | None, sessions: bool) -> dict[str, int]:
    """Return the ttl (ns) that the client may count on, from the invocation of an acquire or
    extend.

    The client's own deadline counts if it is earlier than the invocation + ttl, for example
    that of a session that the service heard of last before the op. A later one counts for
    `sessions` only, which are renewed while their clients wait: any other service counts a
    lease from the request on, whatever its client believes. If the client can see no deadline,
    its lease may expire at any time. A lease that was renewed in the background, each time
    before it expired, lasts to the end of the last renewal. From `may_end` or `other_end` on
    the service may have ended the grant, and a client that reports it `lost` has given it up, so
    the lease is cut off there.
    """
    begin, end, ttl = call.begin, call.end, call.begin.value.get("ttl")
    over = FOREVER if hold is None else min(hold.may_end, hold.other_end, hold.lost)
    if hold is None or end is None or (ttl is None and over == FOREVER):
        return {}
    early = max(0.0, over - begin.time)
    if ttl is None:
        return {"ttl": int(early)}
    deadline = end.value.get("deadline")
    if deadline is None:
        return {"ttl": 0}
    until = _renewed(call, int(deadline), hold)
    lease = (int(deadline) if until is None else until) - begin.time
    if until is None and not sessions:
        lease = min(ttl, lease)
    return {"ttl": int(min(max(0, lease), early))}


def _renewed(call: Call, deadline: int, hold: Hold) -> int | None:
    """Return until when renewals extended the lease of this acquire or extend; None without a
    renewal before it expired."""
    assert call.end is not None
    until, renewed = deadline, False
    for time, later in hold.renewals:
        # A renewal reported during an extend may have preceded it.
        if (call.begin.f == "acquire" or time >= call.end.time) and time <= until:
            until, renewed = int(later), True
    return until if renewed else None


def _by_call(model: Model, calls: list[Call]) -> Model:
    """Return the model for events whose process is the position of their call.

    With moved stamps a release may seem to come before its acquire, so it settles nothing.
    """
    owner = {call.begin.index: call.begin.process for call in calls}

    def action(call: Any) -> Any:
        return model.action(call._replace(process=owner[call.process]))

    return replace(model, action=action, settles=lambda action: None)


def _no_model(test: Test) -> str | None:
    return "shared holds with leases have no model" if test.get("shared") else None


CHECKER = Checker(
    name="linearizable",
    question="The history fits some order of atomic acquires, releases and expiries.",
    about=("service",),
    check=of_history(linearizable),
    column="linear",
    goal=True,
    goal_rank=50,
    suspect=any_of(GRANTED_EARLY, GRANTED_LATE, REFUSED_HOLDER, TOKEN_FELL),
    applies=_no_model,
    touches=lambda history: any(op.value.get("ttl") is not None for op in history.clients()),
)
