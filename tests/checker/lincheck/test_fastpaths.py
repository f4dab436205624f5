"""Each fast path agrees with the general engine on histories too long for brute force."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checker.lincheck import check
from fencepost.checker.lincheck.budget import UNLIMITED
from fencepost.checker.lincheck.fastpaths import BY_MODEL
from fencepost.checker.lincheck.linearize import Walk
from fencepost.checker.lincheck.operation import objects
from tests.checker.lincheck.lincheck_histories import SUBJECTS, Subject, history, leases
from tests.checker.lincheck.lock_oracle import accepts


def unique(subject: Subject) -> Subject:
    """The same without repeated writes of a value; results may be of any value written so far."""
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
@settings(max_examples=150)
@given(seed=st.integers(0, 1 << 40))
def test_a_fast_path_agrees_with_the_engine(name, seed):
    random = Random(seed)
    subject = unique(SUBJECTS[name])
    model = subject.model(random.choice(["nothing", "ended"]))
    # the engine itself can decide only short histories of queues
    ops = 9 if name == "fifo-queue" else 25
    events = history(random, subject, ops, 4, crash=random.choice([0.02, 0.2]), spoil=0.2)
    for operations in objects(enumerate(events, 1), model).parts.values():
        quick = BY_MODEL[name](operations, model)
        failed = Walk.begin(operations, model, UNLIMITED).to_end()
        assert quick in (failed or True, failed is None, None)


@pytest.mark.parametrize("name", [name for name in BY_MODEL if name != "lease-mutex"])
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


def test_an_order_that_is_found_for_leases_is_one_that_brute_force_accepts():
    found = {True: 0, None: 0}
    valid = 0
    for seed in range(1500):
        random = Random(f"leases/{seed}")
        failed_release = random.choice(["nothing", "ended"])
        events = leases(random, 7, 3, info=random.choice([0.0, 0.2]))
        model = SUBJECTS["lease-mutex"].model(failed_release)
        parts = objects(enumerate(events, 1), model).parts.values()
        quick = [BY_MODEL["lease-mutex"](operations, model) for operations in parts]
        for answer in quick:
            found[answer] += 1
        right = accepts("lease-mutex", events, failed_release)
        valid += right
        if None not in quick:
            assert right, seed
    assert found[True] > 100 and found[None] > 100
    assert found[True] > valid / 2
