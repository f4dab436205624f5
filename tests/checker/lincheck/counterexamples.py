"""Check the counterexample of a false verdict by brute force, and list its errors.

The op that failed, the sub-history and its lines, the partial linearizations and the reasons why
no op could come next are each compared with the definition in checker/lincheck/evidence.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fencepost.checker.lincheck.model import Inconsistent, Model, Timed
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.verdict import Verdict
from tests.checker.lincheck.lincheck_oracle import first_failure, linearizable

Event = dict[str, Any]


def defects(events: list[Event], verdict: Verdict) -> Iterator[str]:
    model = verdict.model
    evidence = verdict.evidence(time_limit=60)
    if not evidence.complete:
        yield f"incomplete: {evidence.reason}"
    own = only(events, [op.line for op in verdict.parts[verdict.key]])
    numbers = [number for number, _ in own]
    place = first_failure([event for _, event in own], model)
    if place is None or evidence.failed is None or evidence.failed.line != numbers[place - 1]:
        yield "an innocent op is blamed"
    if evidence.small is None:
        yield "no sub-history"
    else:
        yield from _small(events, evidence, model)
    yield from _partials(evidence, verdict.parts[verdict.key], model)


def _small(events: list[Event], evidence: Any, model: Model) -> Iterator[str]:
    lines = [op.line for op in evidence.small.operations]
    failed = evidence.failed.line
    if failed not in lines:
        yield "the sub-history is without the op that failed"
    if linearizable(_events(events, lines), model):
        yield "the sub-history is linearizable"
        return
    if not _fails_at(events, lines, failed, model):
        yield "the sub-history fails at another op, or without the op that failed"
    if evidence.small.minimal:
        for line in lines:
            rest = [other for other in lines if other != line]
            needed = line == failed or _rests_on(evidence, line, model)
            if not needed and _fails_at(events, rest, failed, model):
                yield "the sub-history is not minimal"


def _fails_at(events: list[Event], lines: list[int], failed: int, model: Model) -> bool:
    """Return whether these lines are linearizable only without the return of that op."""
    kept = only(events, lines)
    place = first_failure([event for _, event in kept], model)
    if place is None or kept[place - 1][0] != failed:
        return False
    return linearizable(_events(events, [line for line in lines if line != failed]), model)


def _rests_on(evidence: Any, line: int, model: Model) -> bool:
    """Return whether the op that failed may depend on this op."""
    failed = evidence.failed
    action = next(op.action for op in evidence.small.operations if op.line == line)
    if not isinstance(model.step(model.initial, failed.action), Inconsistent):
        return False
    if model.rests_on is not None:
        return model.rests_on(failed.action, action)
    return not model.observes(action) and model.gives(action) == model.wants(failed.action)


def _reasons(state: Any, action: Any, ends: list[Timed], model: Model) -> set[str | None]:
    """Return the right reasons. A lease that may have ended is none, unless its grant is unheard of
    and may never have happened."""
    after = model.step(state, action)
    if not isinstance(after, Inconsistent):
        return {None}
    right: set[str | None] = set()
    for end in ends:
        ended = model.step(state, end.action)
        if not isinstance(ended, Inconsistent):
            later = model.step(ended, action)
            right |= {later.why} if isinstance(later, Inconsistent) else set()
            right |= {after.why} if end.idle else set()
    return right or {after.why}


def _partials(evidence: Any, operations: list[Operation], model: Model) -> Iterator[str]:
    if not evidence.partials:
        yield "no partial linearization"
    end, now_ns = evidence.failed.returned, evidence.failed.ended
    spawned = [model.spawns(one.action) for one in operations] if model.spawns else []
    ends = [one for one in spawned if one and now_ns is not None and one.at_ns <= now_ns]
    for partial in evidence.partials:
        state, now, placed = model.initial, -1, set()
        for step in partial.steps:
            state = model.step(state, step.action)
            if isinstance(state, Inconsistent) or state != step.state:
                yield "a partial linearization takes an impossible step"
                break
            if step.operation is None:
                continue
            now = max(now, step.operation.id)
            if step.operation.returned is not None and step.operation.returned < now:
                yield "a partial linearization is out of order"
            placed.add(step.operation.id)
        if state != partial.state or len(placed) != sum(
            s.operation is not None for s in partial.steps
        ):
            yield "a partial linearization does not add up"
        if evidence.failed.id in placed or now > end:
            yield "a partial linearization goes past the failure"
        if evidence.failed not in [blocked.operation for blocked in partial.blocked]:
            yield "the op that failed is not among those that could come next"
        for blocked in partial.blocked:
            if blocked.why not in _reasons(state, blocked.operation.action, ends, model):
                yield "a reason is wrong"
            if blocked.operation == evidence.failed and blocked.why is None:
                yield "the op that failed fits"
            if blocked.operation.id in placed:
                yield "an op that is placed could come next"


def _events(events: list[Event], lines: list[int]) -> list[Event]:
    return [event for _, event in only(events, lines)]


def only(events: list[Event], lines: list[int]) -> list[tuple[int, Event]]:
    """Return (line, event) of the invocations in these lines and of their completions."""
    kept: list[tuple[int, Event]] = []
    open_ops: dict[Any, bool] = {}
    for line, event in enumerate(events, 1):
        if event["type"] == "invoke":
            open_ops[event["process"]] = line in lines
        if open_ops[event["process"]]:
            kept.append((line, event))
    return kept
