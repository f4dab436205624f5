"""Packed records of crashed ops, compared with plain counters."""

from collections import Counter
from random import Random

import pytest

from fencepost.checker.lincheck.configurations import best, faultless, narrowed, put, put_all
from fencepost.checker.lincheck.crashed import COST, FIELD, Crashed, faults
from fencepost.checker.lincheck.model import Action
from fencepost.checker.lincheck.models import named

MODEL = named("cas-register")
CLASSES = {number: Action("cas", (number, number + 1)) for number in range(1, 7)}


class Counted:
    """A Crashed, with plain counters for its classes and for their use by configurations."""

    def __init__(self, random, counted=None):
        self.random = random
        self.crashed = Crashed(MODEL, counted)
        self.left = Counter()
        self.used = [Counter() for _ in range(4)]
        self.records = [0] * 4

    def add(self):
        number = self.random.choice(list(CLASSES))
        self.crashed.want(CLASSES[number])
        self.crashed.add(number, CLASSES[number])
        self.left[number] += 1

    def use(self):
        """Let one configuration use an op of a class that still has one."""
        index = self.random.randrange(4)
        own = self.used[index]
        offered = {}
        for state in range(1, 7):
            for _, number, unit in self.crashed.moves(state, self.records[index], False):
                offered[number] = unit
        wanted = {number for number in CLASSES if number + 1 in self.needs()}
        assert set(offered) == {n for n in +self.left if own[n] < self.left[n]} & wanted
        if offered:
            number = self.random.choice(list(offered))
            assert offered[number] == self.crashed.unit(number)
            own[number] += 1
            self.records[index] += offered[number]

    def needs(self):
        """Return the value that each class still needs: the one that its cas expects."""
        return {number for number in self.crashed.wanted if self.crashed.wanted[number]}

    def write_off(self):
        common, over = self.crashed.spent(self.records)
        self.records = [record - common for record in self.records]
        for number in CLASSES:
            least = min(own[number] for own in self.used)
            for own in self.used:
                own[number] -= least
            self.left[number] -= least
            gone = least and not self.left[number]
            assert over.count(number) == (least if gone else 0)
        for number in over:
            self.crashed.unwant(CLASSES[number])

    def check(self):
        fields = self.crashed.shifts.values()
        guards = sum(1 << shift + FIELD - 1 for shift in fields) | (COST + 1)
        assert self.crashed.guards == self.crashed.compared == guards
        for number in CLASSES:
            assert self.crashed.counts.get(number, 0) == self.left[number]
        for record, own in zip(self.records, self.used, strict=True):
            fields = Counter(
                {n: record >> shift & (1 << FIELD) - 1 for n, shift in self.crashed.shifts.items()}
            )
            assert +fields == +own
            assert record & COST == sum(own.values())  # each applies in one state only
        for index, one in enumerate(self.records):
            for other in range(4):
                into = {}
                put(into, (0, 0), self.records[other], None, self.crashed)
                kept = put(into, (0, 0), one, None, self.crashed)
                dominated = self.used[other] <= self.used[index]
                assert kept is not dominated
                alone = not dominated and self.used[index] <= self.used[other]
                assert len(into[0, 0]) == (1 if dominated or alone else 2)


@pytest.mark.parametrize("seed", range(40))
def test_records_agree_with_plain_counters(seed):
    told = Counted(Random(seed))
    for step in range(120):
        told.random.choices([told.add, told.use, told.write_off], [3, 6, 1])[0]()
        if step % 20 == 7:
            copy, original = told.crashed.copy(), told.crashed
            before = original.counts.copy(), original.shifts.copy(), original.guards
            told.crashed = copy  # changes of the copy must not show in the original
            told.add()
            told.write_off()
            assert (original.counts, original.shifts, original.guards) == before
        told.check()
        for index in ("_by_needs", "_by_gives"):
            assert all(getattr(told.crashed, index).values()), "what is empty is dropped"


def test_a_class_that_is_removed_leaves_nothing_behind():
    crashed = Crashed(MODEL, frozenset())
    for number in (1, 2):
        crashed.want(CLASSES[number + 1])
        crashed.add(number, CLASSES[number])
    assert crashed.uncounted == {1, 2}
    crashed.remove(1)
    assert (crashed.uncounted, set(crashed.counts)) == ({2}, {2})
    assert crashed.moves(1, 0, False) == []


def test_a_field_that_is_free_again_is_given_to_another_class():
    crashed = Crashed(MODEL)
    for number in (1, 2):
        crashed.want(CLASSES[number + 1])  # a configuration needs its value
        crashed.add(number, CLASSES[number])
    one, two = crashed.unit(1), crashed.unit(2)
    guards = crashed.guards
    assert crashed.spent([one, one]) == (one, [1])
    assert set(crashed.shifts) == {2}
    crashed.add(3, CLASSES[3])
    assert crashed.unit(3) == one
    assert crashed.unit(2) == two
    assert (crashed.guards, crashed.compared) == (guards, guards)


def test_the_cheapest_configurations_of_every_state_are_kept():
    states = {(1, 0): [(5, None), (2, None)], (2, 0): [(9, None)], (3, 0): [(1, None), (1, "b")]}
    assert narrowed(states, 3) == {(3, 0): [(1, None)], (1, 0): [(2, None)], (2, 0): [(9, None)]}
    assert narrowed(states, 4)[(3, 0)] == [(1, None), (1, "b")]
    assert narrowed(states, 9).keys() == states.keys()


def test_the_best_configuration_used_the_fewest_classes_too_often_then_the_cheapest():
    crashed = Crashed(MODEL, frozenset())
    for number in (1, 2):
        crashed.want(CLASSES[number + 1])
        crashed.add(number, CLASSES[number])
    once = crashed.unit(1)
    [(_, _, more)] = crashed.moves(1, once, False)
    twice = once + more
    assert (faults(once), faults(twice)) == (0, 1)
    assert crashed.overused(once) == []
    assert crashed.overused(twice) == [1]
    dear = once + crashed.unit(2)
    kept = {(1, 0): [(twice, "a"), (dear, "b")], (2, 0): [(once, "c")], (3, 0): [(twice, "d")]}
    assert best(kept) == ((2, 0), (once, "c"))
    assert faultless(kept) == {(1, 0): [(dear, "b")], (2, 0): [(once, "c")]}
    assert best({(1, 0): kept[1, 0]}) == ((1, 0), (dear, "b"))


def test_putting_several_keeps_those_that_none_covers():
    crashed = Crashed(MODEL)
    for number in (1, 2):
        crashed.want(CLASSES[number + 1])
        crashed.add(number, CLASSES[number])
    one, two = crashed.unit(1), crashed.unit(2)
    into = {}
    entries = [(one, "a")]
    put_all(into, (0, 0), entries, crashed)
    put_all(into, (0, 0), [(two, "b"), (one + two, "c")], crashed)
    assert into == {(0, 0): [(one, "a"), (two, "b")]}
    assert entries == [(one, "a")]
    put_all(into, (0, 0), [(0, "d")], crashed)
    assert into == {(0, 0): [(0, "d")]}


def test_a_copy_does_not_copy_its_own_record_again():
    crashed = Crashed(MODEL)
    copy = crashed.copy()
    copy.add(1, CLASSES[1])
    own = copy.counts
    assert own is not crashed.counts
    copy.add(2, CLASSES[2])
    assert copy.counts is own


def test_an_op_without_readers_serves_only_while_an_op_that_may_overwrite_it_is_out():
    crashed, write = Crashed(MODEL), Action("write", 1)
    assert not crashed.serves(CLASSES[1])
    crashed.want(write)
    crashed.want(write)
    crashed.unwant(write)
    assert crashed.serves(CLASSES[1])
    crashed.unwant(write)
    assert not crashed.serves(CLASSES[1])


def test_a_user_of_a_withdrawn_op_may_use_an_equal_later_one():
    crashed = Crashed(MODEL)
    crashed.want(CLASSES[2])
    crashed.add(1, CLASSES[1])
    one = crashed.unit(1)
    crashed.withdraw(1)
    assert (crashed.counts, crashed.without(1, one), crashed.without(1, 0)) == ({}, 0, 0)
    crashed.add(1, CLASSES[1])
    assert crashed.moves(1, one, False) == []
    assert crashed.moves(1, 0, False) == [(0, 1, one)]


def test_of_two_equal_ops_one_may_be_withdrawn():
    crashed = Crashed(MODEL)
    crashed.want(CLASSES[2])
    for _ in range(2):
        crashed.add(1, CLASSES[1])
    one = crashed.unit(1)
    original = crashed.copy()
    crashed.withdraw(1)
    assert (crashed.counts, original.counts) == ({1: 1}, {1: 2})
    assert [crashed.without(1, used * one) for used in range(3)] == [0, 0, one]
    assert crashed.moves(1, one, False) == []
    assert crashed.moves(1, 0, False) == [(0, 1, one)]
