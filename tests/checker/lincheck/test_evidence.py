"""Evidence is right, and small enough to read."""

import time

import pytest

from fencepost.checker.lincheck import Online, check, named, verify
from fencepost.checker.lincheck.verifier import Step

pytestmark = pytest.mark.slow


def event(process, kind, f, value=None, **more):
    return {"process": process, "type": kind, "f": f, "value": value, **more}


def locking(rounds):
    for count in range(rounds):
        for f in ("acquire", "release"):
            yield event(count % 5, "invoke", f)
            yield event(count % 5, "ok", f)


def granted_twice(rounds):
    yield from locking(rounds)
    for process in (7, 8):
        yield event(process, "invoke", "acquire")
    for process in (7, 8):
        yield event(process, "ok", "acquire")
    yield from locking(10)


@pytest.mark.parametrize("model", ["owner-mutex", "mutex", "lease-mutex", "semaphore", "rw-lock"])
def test_two_grants_after_ten_thousand_good_ones_come_down_to_two_ops(model):
    verdict = check(list(granted_twice(10_000)), model)
    assert verdict.valid is False
    evidence = verdict.evidence(time_limit=600)
    assert evidence.complete
    assert [op.process for op in evidence.small.operations] == [7, 8]
    assert evidence.failed.process == 8
    assert evidence.partials[0].blocked[0].operation == evidence.failed
    assert evidence.partials[0].blocked[0].why is not None


def test_a_stale_read_is_shown_with_the_write_it_saw_and_the_one_it_missed():
    events = []
    for value in range(2000):
        events += [event(0, "invoke", "write", value), event(0, "ok", "write", value)]
    events += [event(1, "invoke", "read"), event(1, "ok", "read", 7)]
    evidence = check(events, "register").evidence()
    first, *_, last = [op.action for op in evidence.small.operations]
    assert (first.value, last.result, len(evidence.small.operations)) == (7, 7, 3)


def test_evidence_keeps_its_time_limit():
    verdict = check(list(granted_twice(5_000)), "lease-mutex", fast=False)
    started = time.process_time()
    evidence = verdict.evidence(time_limit=0.001)
    assert time.process_time() - started < 0.5
    assert evidence.valid is False
    assert not evidence.complete
    assert "time limit" in evidence.reason


def linearized():
    events = [
        event(0, "invoke", "write", 1),
        event(1, "invoke", "write", 2),
        event(0, "ok", "write", 1),
        event(1, "ok", "write", 2),
        event(0, "invoke", "read"),
        event(0, "ok", "read", 1),
    ]
    verdict = check(events, "register")
    (steps,) = verdict.evidence().linearizations.values()
    return verdict.parts[None], list(steps), verdict.model


def test_the_verifier_accepts_right_evidence_and_names_errors():
    operations, steps, model = linearized()
    assert [step.action.value or step.action.result for step in steps] == [2, 1, 1]
    assert verify(operations, steps, model) is None
    assert "missing" in verify(operations, steps[:-1], model)
    assert "can't read 1 from 2" in verify(operations, [steps[1], steps[0], steps[2]], model) or (
        "the state" in verify(operations, [steps[1], steps[0], steps[2]], model)
    )
    assert "placed before" in verify(operations, [steps[0], *steps], model)
    assert "the state" in verify(operations, [steps[0]._replace(state=9), *steps[1:]], model)
    late = [
        operation._replace(id=10, returned=11) if operation == steps[0].operation else operation
        for operation in operations
    ]
    moved = Step(late[[op.id for op in late].index(10)], steps[0].action, steps[0].state)
    assert "had returned before" in verify(late, [moved, *steps[1:]], model)
    assert "is not an op of this history" in verify(operations[1:], steps, model)


def test_an_expiry_is_not_accepted_before_its_time():
    grant = {"ttl": 10}
    events = [
        event(0, "invoke", "acquire", grant, time=0),
        event(0, "ok", "acquire", {}, time=1),
        event(1, "invoke", "acquire", grant, time=2),
        event(1, "ok", "acquire", {}, time=12),
    ]
    verdict = check(events, "lease-mutex")
    (steps,) = verdict.evidence().linearizations.values()
    assert [step.action.f for step in steps] == ["acquire", "expire", "acquire"]
    assert verify(verdict.parts[None], steps, verdict.model) is None
    early = [op._replace(ended=9) if op.process == 1 else op for op in verdict.parts[None]]
    moved = [
        step._replace(operation=early[1]) if step.operation in verdict.parts[None][1:] else step
        for step in steps
    ]
    assert verify(early, moved, verdict.model) is not None
    events[-1]["time"] = 9
    assert check(events, "lease-mutex").valid is False


def test_online_needs_memory_only_for_concurrent_ops():
    online = Online(named("fenced-mutex"))
    for count in range(6000):
        for f, kind in (
            ("acquire", "invoke"),
            ("acquire", "ok"),
            ("release", "invoke"),
            ("release", "ok"),
        ):
            value = {"token": count} if (f, kind) == ("acquire", "ok") else None
            assert online.feed(event(count % 3, kind, f, value)) is True
    (only,) = online._objects.values()
    assert len(only.events) == 0
    assert len(only.search.table.states) < 25_000
    assert online.feed(event(1, "invoke", "release")) is True
    assert online.feed(event(1, "ok", "release")) is False
    assert online.feed(event(2, "invoke", "release")) is False
