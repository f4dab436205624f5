"""The generator is a function of its seed and of what it was answered, and ends what it began."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.workloads.critical_section import CriticalSection, Settings

ANSWERS = {
    "acquire": {"hold": "h1", "token": 1, "deadline": 5},
    "extend": {"deadline": 9},
    "read": {"value": "x", "version": 3},
    "write": {"stored": 4},
    "release": {},
}
ENDS = st.lists(st.sampled_from(["ok", "ok", "ok", "fail", "info"]), min_size=1, max_size=30)


def play(section, ends):
    """Its ops, where each completes as `ends` has it."""
    steps = [section.first()]
    for type in ends:
        step = steps[-1]
        value = step.value | (ANSWERS[step.f] if type == "ok" else {})
        steps.append(section.next(step.f, type, value))
    return steps


def names(steps):
    return [step.f for step in steps]


@given(st.text(max_size=5), ENDS)
@settings(deadline=None, max_examples=60)
def test_the_same_seed_and_the_same_answers_give_the_same_ops(seed, ends):
    same = [play(CriticalSection(Settings(), seed), ends) for _ in range(2)]
    assert same[0] == same[1]


def test_another_seed_gives_other_waits():
    runs = {CriticalSection(Settings(), str(seed)).first().after_s for seed in range(9)}
    assert len(runs) == 9


def test_a_section_acquires_reads_writes_and_releases_and_begins_anew():
    steps = play(CriticalSection(Settings(extend=0), "s"), ["ok"] * 4)
    assert names(steps) == ["acquire", "read", "write", "release", "acquire"]
    assert [step.value for step in steps[:4]] == [
        {"lock": "orders", "ttl": 2_000_000_000},
        {"resource": "account", "hold": "h1"},
        {"resource": "account", "version": 3, "hold": "h1"},
        {"lock": "orders", "hold": "h1"},
    ]


def test_of_several_locks_a_section_takes_one_and_uses_its_resource():
    section = CriticalSection(Settings(locks=3, extend=0.5), "s")
    taken = set()
    lock, resource = "", ""
    for step in play(section, ["ok", "fail", "ok", "ok", "ok", "ok", "info"] * 60):
        if step.f == "acquire":
            lock = step.value["lock"]
            resource = lock.replace("orders", "account")
            taken.add((lock, resource))
        assert step.value.get("lock", lock) == lock
        assert step.value.get("resource", resource) == resource
    assert taken == {(f"orders-{n}", f"account-{n}") for n in (1, 2, 3)}


def test_which_lock_is_taken_comes_from_the_seed():
    def locks(seed):
        steps = play(CriticalSection(Settings(locks=5, write=False), seed), ["ok"] * 40)
        return [step.value["lock"] for step in steps]

    assert locks("1") == locks("1") != locks("2")


def test_with_one_lock_a_seed_gives_the_ops_that_it_always_gave():
    """So that a stored run's seed still says what its clients did."""
    found = []
    for chosen in (Settings(), Settings(shared=0.3)):
        ends = ["ok", "ok", "fail", "ok", "ok", "ok", "info"] * 30
        for step in play(CriticalSection(chosen, "7/3/work"), ends):
            found.append([step.f, step.value, step.after_s])
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest() == (
        "253b64c8e47b560979e4aec96a7ea44ab3dce77ed27316268163e4b108ccefd3"
    )


def test_a_holder_that_extends_does_so_before_it_reads():
    steps = play(CriticalSection(Settings(extend=1), "s"), ["ok"] * 4)
    assert names(steps) == ["acquire", "extend", "read", "write", "release"]
    assert steps[1].value == {"lock": "orders", "hold": "h1", "ttl": 2_000_000_000}


def test_without_a_resource_a_lock_is_taken_and_released():
    steps = play(CriticalSection(Settings(write=False, extend=1), "s"), ["ok"] * 2)
    assert names(steps) == ["acquire", "release", "acquire"]


@given(st.text(max_size=5), ENDS)
@settings(deadline=None, max_examples=100)
def test_whatever_is_answered_a_hold_is_given_back_before_the_next_is_asked_for(seed, ends):
    """But for a process that is gone: `info` makes its successor start over."""
    steps = play(CriticalSection(Settings(extend=0.5), seed), ends)
    holding = False
    for step, type, following in zip(steps, ends, steps[1:], strict=False):
        if type == "info":
            assert following.f == "acquire"
            holding = False
            continue
        if step.f == "acquire":
            holding = type == "ok"
        elif step.f == "release":
            holding = False
        if type == "fail" and holding:
            assert following.f == "release"
        assert (following.f != "acquire") is holding


@pytest.mark.parametrize("f", ["extend", "read", "write"])
def test_a_holder_that_is_refused_releases_its_hold(f):
    step = CriticalSection(Settings(), "s").next(f, "fail", {"hold": "h7"})
    assert (step.f, step.value) == ("release", {"lock": "orders", "hold": "h7"})


@given(st.integers(), st.floats(0, 500), st.floats(0, 500))
@settings(deadline=None, max_examples=50)
def test_no_wait_is_longer_than_the_chosenallow(seed, think_ms, pause_ms):
    chosen = Settings(think_ms=think_ms, pause_ms=pause_ms, extend=0.5)
    steps = play(CriticalSection(chosen, str(seed)), ["ok"] * 20)
    for step in steps:
        limit = pause_ms if step.f == "acquire" else think_ms
        assert 0 <= step.after_s <= limit / 1000
