"""The table numbers states and actions, drops them whole, and never reuses a number."""

from random import Random

import pytest

from fencepost.checker.lincheck import Online, check, table
from fencepost.checker.lincheck.model import Action
from fencepost.checker.lincheck.models import named
from fencepost.checker.lincheck.table import IMPOSSIBLE, Table
from tests.checker.lincheck.lincheck_histories import SUBJECTS, history

WRITE, READ = Action("write", 5), Action("read", result=5)


@pytest.fixture
def filled():
    """Return (table, numbers of the states null and 5 and of the actions); one step is cached."""
    found = Table(named("register"))
    states = [found.state_number(state) for state in (None, 5)]
    actions = [found.action_number(action) for action in (WRITE, READ)]
    assert found.step(actions[0], states[0]) == states[1]
    return found, states, actions


def test_equal_states_and_actions_have_one_number_and_no_two_the_same(filled):
    found, states, actions = filled
    assert [found.state_number(state) for state in (None, 5)] == states
    assert [found.action_number(action) for action in (WRITE, READ)] == actions
    assert sorted([*states, *actions]) == [1, 2, 3, 4]
    assert found.facets == {states[0]: None, states[1]: 5}
    assert found.observing == {actions[0]: False, actions[1]: True}


def test_a_step_of_the_model_is_computed_once_and_cached(filled):
    found, (null, five), (write, read) = filled
    assert found.step(read, null) == IMPOSSIBLE
    assert found.step(read, five) == five
    assert found.steps == {write: {null: five}, read: {null: IMPOSSIBLE, five: five}}


def test_compacting_drops_dead_entries_and_every_step(filled):
    found, (_, five), (_, read) = filled
    found.compact({five}, {read})
    assert (found.states, found.state_numbers, found.facets) == ({five: 5}, {5: five}, {five: 5})
    assert (found.actions, found.numbers) == ({read: READ}, {READ: read})
    assert (found.observing, found.steps) == ({read: True}, {read: {}})
    assert found.state_number(None) == 5
    assert found.action_number(WRITE) == 6


def test_a_table_is_crowded_at_twice_the_live_entries_of_the_last_compaction(monkeypatch, filled):
    found, states, actions = filled
    assert found.compact_at == table.COMPACT_AT
    monkeypatch.setattr(table, "COMPACT_AT", 100)
    found.compact(set(states), {actions[0]})
    assert found.compact_at == 106
    found.compact_at = 4
    assert not found.crowded()
    found.state_number(6)
    found.state_number(7)
    assert found.crowded()
    assert Table(named("mutex")).compact_at == 100


@pytest.mark.parametrize("name", ["cas-register", "kv", "lease-mutex", "counter"])
def test_verdicts_are_the_same_however_often_tables_are_compacted(name, monkeypatch):
    model = SUBJECTS[name].model()
    compacted = 0
    compact = Table.compact

    def counted(self, states, actions):
        nonlocal compacted
        compacted += 1
        before = self.states.copy(), self.actions.copy()
        assert states <= before[0].keys()
        assert actions <= before[1].keys()
        compact(self, states, actions)

    def verdicts(events):
        online = Online(model)
        fed = [online.feed(event) for event in events]
        return check(events, model, fast=False).valid, fed

    for seed in range(60):
        events = history(Random(f"compact {seed}"), SUBJECTS[name], 14, crash=0.3)
        plain = verdicts(events)
        with monkeypatch.context() as patched:
            patched.setattr(Table, "compact", counted)
            patched.setattr(table, "COMPACT_AT", 3)
            assert verdicts(events) == plain, seed
    assert compacted > 100
