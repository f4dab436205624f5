"""`fencing`: do the tokens order the grants, and does the resource enforce that order?

A fencing token helps only if it rises with every grant (Kleppmann 2016; tokens.py), and if the
resource remembers the highest token it has seen and rejects writes with a lower one. Both are
judged per lock: tokens of two locks have no order, even if one resource is written under both. A
guard that refuses lower tokens alone may refuse no other write (wrongly_refused.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.checker.checker import Checker, Test, of_history
from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.faults import Fault, during, faults, over_time
from fencepost.checker.facts.highest import Highest
from fencepost.checker.facts.holds import Hold, holds, lock_of, seconds
from fencepost.checker.facts.second_grants import chains
from fencepost.checker.facts.spans import Spans
from fencepost.checker.facts.time_order import Axes, tied
from fencepost.checker.facts.tokens import Misorder, fallen, grants, ordered, repeated
from fencepost.checker.facts.writes import Write, after_others, owners, registers
from fencepost.checker.facts.wrongly_refused import wrongly_refused
from fencepost.checker.history.accesses import number
from fencepost.checker.history.history import Call, History
from fencepost.checker.signs import TOKEN_FELL, VERSION_JUMPED, WROTE_LATE, any_of
from fencepost.checker.verdict import Verdict, count, noted
from fencepost.checker.why.cause import Causes, as_sentences, cause, causes


def fencing(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that tokens are unique and rise along certain time, and that no lower token is accepted
    after a higher one."""
    found = holds(history, test)
    granted = sum(1 for hold in found if hold.token is not None)
    if not granted:
        return Verdict("unknown", "No grant carried a token: nothing was tested.")
    on, clocks = over_time(faults(history)), Clocks(test)
    per_lock = grants(history, found, clocks)
    pairs = ordered(history, test, clocks)
    misordered = [wrong for mine in per_lock for wrong in repeated(mine)] + fallen(pairs)
    written = _written(history, found, clocks)
    late = list(_accepted_late(written, Axes(clocks, tied(history)), _chained(found)))
    # A test.json of before `lower_only` says it by the guard's name.
    lower_only = test.get("lower_only", test.get("guard") == "fenced")
    denied = list(wrongly_refused(history, clocks)) if lower_only else []
    untested = _untested(history, found, bool(pairs), written)
    details = {
        "tokens": granted,
        "grants": not misordered,
        "writes": not (late or denied),
        "untested": untested,
    }
    if not misordered and not late and not denied:
        if not _compared(found, written):
            summary = "No two tokens could be compared: nothing was tested."
            return Verdict("unknown", noted(summary, untested), [], details)
        summary = f"{count(granted, 'token')}, unique and rising."
        return Verdict(True, noted(summary, untested), [], details)
    parts = []
    if misordered:
        wrong = len({wrong.second.index for wrong in misordered})
        parts.append(f"{wrong} of {count(granted, 'token')} repeated or lower")
    if late:
        parts.append(f"{count(len(late), 'write')} accepted after one with a higher token")
    if denied:
        parts.append(f"{count(len(denied), 'write')} refused that had no lower token")
    known = causes(history, test)
    evidence = [_grant_evidence(wrong, on, known) for wrong in misordered]
    evidence += [_write_evidence(*row, on, known) for row in late]
    evidence += [_refusal_evidence(call) for call in denied]
    evidence.sort(key=lambda row: row["time_ns"])
    return Verdict(False, noted(f"{' and '.join(parts)}.", untested), evidence, details)


def _compared(found: list[Hold], written: list[_Written]) -> bool:
    """Return whether two grants of a lock had tokens, or two accepted writes of a resource."""
    tokens = Counter(hold.lock for hold in found if hold.token is not None)
    writes = Counter[Any]()
    for each in written:
        writes[each.resource] += 0 if each.lock is None else len(each.writes)
    return max(*tokens.values(), *writes.values(), 0) > 1


def _untested(
    history: History, found: list[Hold], in_order: bool, written: list[_Written]
) -> list[str]:
    """Return the properties that this history could not have shown to be violated."""
    untested = []
    if not in_order:
        untested.append("the order of tokens (no grant came certainly after another)")
    without = sum(1 for hold in found if hold.token is None)
    if without:
        untested.append(f"{count(without, 'grant')} without a token")
    unknown = sum(len(each.writes) for each in written if each.lock is None)
    if unknown:
        untested.append(f"{count(unknown, 'write')} of an unknown lock")
    if all(each.lock is None for each in written):
        untested.append("the resource (no write with a lock's token was accepted)")
    elif not _met(history, written):
        untested.append("the resource (it accepted no two writes with a lock's tokens)")
    return untested


def _met(history: History, written: list[_Written]) -> bool:
    """Return whether a resource accepted two writes with tokens of a lock, or one, and refused one
    with a lower token."""
    accepted = {each.resource: _token(each.writes[0]) for each in written if each.lock is not None}
    refused = (
        call.begin.value
        for call in history.calls()
        if call.begin.f == "write" and call.type == "fail"
    )
    return any(each.lock is not None and len(each.writes) > 1 for each in written) or any(
        (token := number(value.get("token"))) is not None
        and token < accepted.get(value.get("resource"), token)
        for value in refused
    )


@dataclass(frozen=True)
class _Written:
    """The writes that one resource accepted with tokens of one lock; None for writes whose lock is
    unknown."""

    resource: Any
    lock: str | None
    writes: list[Write]


def _written(history: History, found: list[Hold], clocks: Clocks) -> list[_Written]:
    """Group writes by lock. A write's lock is that of the hold that it names. If it names none, or
    one that was never granted, its lock is the only one that was asked for, if there is just one.
    """
    held = owners(found)
    asked = {lock_of(call.begin.value) for call in history.calls() if call.begin.f == "acquire"}
    only = asked.pop() if len(asked) == 1 else None
    rows: list[_Written] = []
    for register in registers(history, clocks):
        locks: dict[str | None, list[Write]] = {}
        for write in register.writes:
            hold = held.get(write.hold or "")
            if write.token is not None:
                locks.setdefault(hold.lock if hold else only, []).append(write)
        rows += [_Written(register.name, lock, writes) for lock, writes in locks.items()]
    return rows


class _Above:
    """The accepted writes, for finding one with a higher token: writes.Seen. `chained`: the chains
    of writes by the names of their holds."""

    def __init__(self, chained: Mapping[str | None, int]) -> None:
        self._chained = chained
        self._highest = Highest[Write]()

    def add(self, write: Write) -> None:
        self._highest.add(_token(write), self._chained.get(write.hold), write)

    def against(self, write: Write) -> Write | None:
        return self._highest.above(_token(write), self._chained.get(write.hold))


def _token(write: Write) -> int:
    assert write.token is not None
    return write.token


def _chained(found: list[Hold]) -> dict[str | None, int]:
    """Return the chain of each hold that is in one, by the hold's name."""
    numbers = chains(found)
    named = owners(found).items() if numbers else ()
    return {name: numbers[hold.index] for name, hold in named if hold.index in numbers}


def _accepted_late(
    written: list[_Written], axes: Axes, chained: Mapping[str | None, int]
) -> Iterator[tuple[Write, Write, _Written]]:
    """Yield writes accepted after one with a higher token of the same lock: (that one, it,
    where)."""
    for each in written:
        if each.lock is not None:
            for late, higher in after_others(each.writes, axes, lambda: _Above(chained)):
                yield higher, late, each


def _grant_evidence(wrong: Misorder, on: Spans[Fault], known: Causes) -> dict[str, Any]:
    first, second = wrong.first, wrong.second
    why = known.forgot(first, second)
    return {
        "what": (
            f"{second.who} was granted token {second.token} at {seconds(second.start)}: "
            f"{wrong.how}, which {first.who} was granted at {seconds(first.start)}."
            f"{as_sentences(why) or during(on, first.start, second.start)}"
        ),
        **cause(why),
        "time_ns": second.start,
        "lock": second.lock,
        "holds": [first.name, second.name],
        "ops": [first.index, second.index],
    }


def _write_evidence(
    first: Write, second: Write, where: _Written, on: Spans[Fault], known: Causes
) -> dict[str, Any]:
    why = known.worked(second.hold, second.done_ns, sent=second.sent_ns, since=first.sent_ns)
    return {
        "what": (
            f"{second.who} wrote {second.value!r} with token {second.token}, accepted by "
            f"{seconds(second.done_ns)}, after the resource had accepted token {first.token} "
            f"from {first.who}.{as_sentences(why) or during(on, second.sent_ns, second.done_ns)}"
        ),
        **cause(why),
        "time_ns": second.done_ns,
        "resource": where.resource,
        "lock": where.lock,
        "ops": [first.begin, second.begin],
    }


def _refusal_evidence(call: Call) -> dict[str, Any]:
    begin, end = call.begin, call.end
    assert end is not None
    return {
        "what": (
            f"{begin.node or 'a client'} (process {begin.process}) wrote {call.get('value')!r} "
            f"with token {begin.value['token']} and was refused at {seconds(end.time)}, though no "
            "write with a higher token had been sent to the resource."
        ),
        "time_ns": end.time,
        "resource": begin.value.get("resource"),
        "ops": [begin.index, end.index],
    }


def _no_token(test: Test) -> str | None:
    return None if test["lock"]["token"] else "the lock issues no token"


CHECKER = Checker(
    name="fencing",
    question="Tokens rise with every grant, and no lower one is accepted after a higher.",
    about=("service", "resource"),
    check=of_history(fencing),
    column="fencing",
    goal=True,
    goal_rank=30,
    suspect=any_of(TOKEN_FELL, WROTE_LATE, VERSION_JUMPED),
    applies=_no_token,
    touches=lambda history: any(op.value.get("token") is not None for op in history.clients()),
)
