"""A model's hints, which save the search work, are true in every state that a test reaches.

A hint that claims too much is a wrong verdict; the laws are those of checker/lincheck/model.py. A
hint that claims too little costs time: test_effort.py notices.
"""

from itertools import product

import pytest

from fencepost.checker.lincheck.model import ANY_STATE, UNSAID, Action, Inconsistent
from fencepost.checker.lincheck.models import named
from tests.checker.lincheck.lincheck_specifications import SPECS, call

REACHING = [spec for spec in SPECS if named(spec.name).reaches is not None]


def called(spec):
    return f"{spec.name}-{spec.init}-{spec.failed_release}"


@pytest.fixture(params=SPECS, ids=called)
def world(request):
    return explored(request.param)


@pytest.fixture(params=REACHING, ids=called)
def reaching(request):
    """Return the worlds of the models that report the states an observer can still reach."""
    return explored(request.param)


def explored(spec):
    """Return (model, its actions, the states that they lead to)."""
    model = named(spec.name, spec.init, spec.failed_release)
    actions = {action for op in spec.ops if (action := model.action(op)) is not None}
    states, ahead = {model.initial}, [model.initial]
    for _ in range(3):
        ahead = [
            after
            for state, action in product(ahead, actions)
            if possible(after := model.step(state, action)) and after not in states
        ]
        states.update(ahead)
    return model, sorted(actions, key=repr), sorted(states, key=repr)


def possible(after):
    return not isinstance(after, Inconsistent)


def test_an_observing_action_changes_no_state(world):
    model, actions, states = world
    for state, action in product(states, actions):
        after = model.step(state, action)
        if model.observes(action) and possible(after):
            assert after == state


def test_an_action_that_needs_another_facet_changes_no_state(world):
    model, actions, states = world
    for state, action in product(states, actions):
        after = model.step(state, action)
        if model.needs(action) is not UNSAID and model.needs(action) != model.facet(state):
            assert not possible(after) or after == state


def test_an_action_is_helped_only_by_actions_that_give_its_needs(world):
    model, actions, states = world
    for action in actions:
        wanted = model.wants(action)
        if wanted is UNSAID:
            continue
        if wanted is ANY_STATE:
            [_] = {model.step(state, action) for state in states}
            continue
        for state, other in product(states, actions):
            between = model.step(state, other)
            if possible(between) and between != state and possible(model.step(between, action)):
                helped = not possible(model.step(state, action))
                assert not helped or model.gives(other) in (wanted, UNSAID), (state, other, action)


def test_actions_without_a_common_cell_commute(world):
    model, actions, states = world
    for state, first, second in product(states, actions, actions):
        one, two = model.cells(first), model.cells(second)
        if one is None or two is None or not one.isdisjoint(two):
            continue
        ways = []
        for a, b in ((first, second), (second, first)):
            between = model.step(state, a)
            after = model.step(between, b) if possible(between) else between
            ways.append(after if possible(after) else None)
        assert ways[0] == ways[1]


def test_where_an_observer_is_out_of_reach_only_a_reset_makes_it_possible_again(reaching):
    model, actions, states = reaching
    observers = [action for action in actions if model.observes(action)]
    kept = [action for action in actions if not model.resets(action)]
    for state, observer in product(states, observers):
        if model.reaches(state, observer):
            continue
        ahead = {state}
        for _ in range(3):
            assert not any(possible(model.step(one, observer)) for one in ahead)
            ahead = {model.step(one, action) for one, action in product(ahead, kept)}
            ahead = {one for one in ahead if possible(one)}


def test_a_replacing_action_leaves_its_cell_alike_in_every_state(reaching):
    model, actions, states = reaching
    for action in filter(model.replaces, actions):
        assert model.resets(action)
        cell = model.cells(action)
        observers = [a for a in actions if model.observes(a) and model.cells(a) == cell]
        [_] = {
            tuple(possible(model.step(model.step(state, action), seen)) for seen in observers)
            for state in states
        }


@pytest.mark.parametrize(
    ("name", "action", "other", "rests"),
    [
        ("set", Action("read", result=frozenset({1})), Action("add", 1), True),
        ("set", Action("read", result=frozenset({1})), Action("add", 2), False),
        ("fifo-queue", Action("dequeue", result=1), Action("enqueue", 1), True),
        ("fifo-queue", Action("dequeue", result=1), Action("enqueue", 2), False),
        ("fifo-queue", Action("enqueue", 1), Action("enqueue", 1), False),
        ("counter", Action("read", result=1), Action("add", 1), True),
        ("counter", Action("read", result=1), Action("add", 0), False),
        ("counter", Action("add", 1), Action("add", 1), False),
        ("kv", Action("get", result="ab", owner="k"), Action("put", "a", owner="k"), True),
        ("kv", Action("get", result="ab", owner="k"), Action("append", "b", owner="k"), True),
        ("kv", Action("get", result="ab", owner="k"), Action("append", "c", owner="k"), False),
        ("kv", Action("get", result="ab", owner="k"), Action("append", "b", owner="l"), False),
    ],
)
def test_a_result_depends_on_the_ops_that_produced_its_value(name, action, other, rests):
    assert bool(named(name).rests_on(action, other)) is rests


@pytest.mark.parametrize(
    ("name", "action", "cells"),
    [
        ("kv", Action("put", "a", owner="k"), {"k"}),
        ("multi-register", Action("txn", (("read", "x", 1), ("write", "y", 2))), {"x", "y"}),
        ("unordered-queue", Action("enqueue", 1), {1}),
        ("unordered-queue", Action("dequeue", result=2), {2}),
    ],
)
def test_an_action_touches_the_cells_that_it_names(name, action, cells):
    assert named(name).cells(action) == cells


def test_a_lock_must_be_free_to_be_acquired_and_held_to_be_released():
    for name in ("owner-mutex", "fenced-mutex"):
        model = named(name)
        acquire, release = model.action(call(3, "acquire")), model.action(call(3, "release"))
        assert [model.needs(acquire), model.wants(acquire), model.gives(acquire)] == [None, None, 3]
        assert [model.needs(release), model.wants(release), model.gives(release)] == [3, 3, None]


def test_a_lease_is_given_by_its_grant_and_its_extensions_and_its_end_may_help_anything():
    model = named("lease-mutex")
    acquire = model.action(call(3, "acquire", {"ttl": 1}, {"hold": "h"}))
    extend, release = (
        model.action(call(3, f, {"ttl": 2, "hold": "h"})) for f in ("extend", "release")
    )
    own = acquire.owner
    assert [model.gives(a) for a in (acquire, extend, release)] == [own, own, None]
    assert [model.wants(a) for a in (acquire, extend, release)] == [None, own, own]
    assert model.gives(model.spawns(acquire).action) is UNSAID
