"""Each fast path says what the general engine says, on histories longer than brute force can."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lincheck_histories import SUBJECTS, Subject, history

from fencepost.checker.lincheck import check
from fencepost.checker.lincheck.budget import UNLIMITED
from fencepost.checker.lincheck.fastpaths import BY_MODEL
from fencepost.checker.lincheck.linearize import Walk
from fencepost.checker.lincheck.operation import objects


def unique(subject: Subject) -> Subject:
    """The same, but no value is written twice; results may be of any value written so far."""
    if subject.lock:
        return subject
    count = iter(range(1, 1000))
    given_out = [0] if subject.name == "register" else []

    def op(random, process, holding):
        f, value = subject.op(random, process, holding)
        if value is not None:
            value = next(count)
            given_out.append(value)
        return f, value

    def results(f, value):
        if f == "dequeue":
            return [*given_out, None]
        if f != "read":
            return [value]
        if subject.name == "register":
            return list(given_out)
        return [given_out[:i] for i in range(len(given_out) + 1)] + [given_out[1:]]

    return Subject(subject.name, op, results, subject.init, subject.lock)


@pytest.mark.parametrize("name", BY_MODEL)
@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 1 << 40))
def test_a_fast_path_agrees_with_the_engine(name, seed):
    random = Random(seed)
    subject = unique(SUBJECTS[name])
    model = subject.model(random.choice(["nothing", "ended"]))
    ops = 9 if name == "fifo-queue" else 25  # what the engine itself can do with queues is little
    events = history(random, subject, ops, 4, crash=random.choice([0.02, 0.2]), spoil=0.2)
    for operations in objects(enumerate(events, 1), model).parts.values():
        quick = BY_MODEL[name](operations, model)
        failed = Walk.begin(operations, model, UNLIMITED).to_end()
        assert quick in (failed or True, failed is None, None)


@pytest.mark.parametrize("name", BY_MODEL)
def test_a_fast_path_decides_most_histories_that_it_is_made_for_both_ways(name):
    random = Random(name)
    answers = {True: 0, False: 0, None: 0}
    for _ in range(300):
        subject = unique(SUBJECTS[name])
        events = history(random, subject, 10, 4, crash=0.1, spoil=0.3)
        for operations in objects(enumerate(events, 1), subject.model()).parts.values():
            quick = BY_MODEL[name](operations, subject.model())
            answers[quick if quick is None or quick is True else False] += 1
    assert answers[True] > 20
    assert answers[False] > 20


def test_two_holds_that_meet_are_found_among_any_number_of_pending_acquires():
    pending = [{"process": p, "type": "invoke", "f": "acquire"} for p in range(10, 2000)]
    events = pending + [
        {"process": p, "type": kind, "f": "acquire"} for p in (1, 2) for kind in ("invoke", "ok")
    ]
    assert check(events, "owner-mutex").valid is False
    assert check(events[:-1], "owner-mutex").valid is True
