"""The engine says what trying every order says, for every model."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lincheck_histories import SUBJECTS, history
from lincheck_oracle import linearizable

from checker.lincheck import Online, check, verify
from checker.lincheck.budget import Budget
from checker.lincheck.linearize import Walk, explore
from checker.lincheck.operation import objects

QUICK = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", SUBJECTS)
@QUICK
@given(seed=st.integers(0, 1 << 40))
def test_the_engine_agrees_with_brute_force(name, seed):
    random = Random(seed)
    subject = SUBJECTS[name]
    failed_release = random.choice(["nothing", "ended"])
    events = history(random, subject, random.randrange(1, 7), failed_release=failed_release)
    model = subject.model(failed_release)
    expected = linearizable(events, model)
    assert check(events, model, fast=False).valid is expected
    assert check(events, model, fast=False, partition=False).valid is expected
    assert check(events, model).valid is expected


@pytest.mark.parametrize("name", SUBJECTS)
def test_both_verdicts_are_well_represented_and_right(name):
    random = Random(name)
    subject = SUBJECTS[name]
    verdicts = []
    for _ in range(100):
        events = history(random, subject, 7, processes=4)
        model = subject.model()
        expected = linearizable(events, model)
        verdicts.append(expected)
        verdict = check(events, model)
        assert verdict.valid is expected, events
        evidence = verdict.evidence()
        assert evidence.complete
        if expected:
            for key, steps in evidence.linearizations.items():
                assert verify(verdict.parts[key], steps, model) is None
        else:
            assert evidence.small.minimal
    assert 0.15 < sum(verdicts) / len(verdicts) < 0.95


@pytest.mark.parametrize("name", SUBJECTS)
@QUICK
@given(seed=st.integers(0, 1 << 40))
def test_online_says_false_at_the_first_event_that_makes_it_so(name, seed):
    random = Random(seed)
    subject = SUBJECTS[name]
    events = history(random, subject, random.randrange(1, 6))
    online = Online(subject.model())
    for count, event in enumerate(events, 1):
        expected = linearizable(events[:count], subject.model())
        assert online.feed(event) is expected
        if not expected:
            break


@pytest.mark.parametrize("name", ["cas-register", "mutex", "counter", "set", "kv", "lease-mutex"])
@QUICK
@given(seed=st.integers(0, 1 << 40))
def test_narrow_searches_come_to_the_verdict_of_the_full_one(name, seed):
    random = Random(seed)
    model = SUBJECTS[name].model()
    events = history(random, SUBJECTS[name], 16, processes=5, crash=0.4, spoil=0.7)
    for operations in objects(enumerate(events, 1), model).parts.values():
        _, narrow = explore(operations, model, Budget.starting_now(20))
        full = Walk(operations, model, Budget.starting_now(20)).to_end()
        assert (narrow is None) is (full is None)


@pytest.mark.parametrize("name", SUBJECTS)
def test_swapping_two_results_is_noticed_when_it_matters(name):
    random = Random(f"swap {name}")
    subject = SUBJECTS[name]
    noticed = 0
    for _ in range(60):
        events = history(random, subject, 6, crash=0.05, spoil=0)
        model = subject.model()
        assert check(events, model).valid is True
        completions = [i for i, event in enumerate(events) if event["type"] == "ok"]
        if not completions:
            continue
        same = [
            (i, j)
            for i in completions
            for j in completions
            if i < j and events[i]["f"] == events[j]["f"]
        ]
        if same:
            i, j = random.choice(same)
            events[i], events[j] = (
                {**events[i], "value": events[j]["value"]},
                {**events[j], "value": events[i]["value"]},
            )
        drop = random.choice(completions)
        process = events[drop]["process"]
        began = max(
            i
            for i in range(drop + 1)
            if events[i]["process"] == process and events[i]["type"] == "invoke"
        )
        spoiled = [event for i, event in enumerate(events) if i not in (drop, began)]
        for mutant in (events, spoiled):
            expected = linearizable(mutant, model)
            assert check(mutant, model).valid is expected
            noticed += not expected
    assert noticed > 10
