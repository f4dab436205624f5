"""Dropping crashed ops that no later op can use changes no verdict."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from fencepost.checker.lincheck import check, named, outlived
from fencepost.checker.lincheck.budget import UNLIMITED
from fencepost.checker.lincheck.crashed import Crashed
from fencepost.checker.lincheck.linearize import Walk
from fencepost.checker.lincheck.model import UNSAID, Action
from fencepost.checker.lincheck.models.lock import FREE
from fencepost.checker.lincheck.operation import objects
from fencepost.checker.lincheck.outlived import Outlived
from tests.checker.lincheck.counterexamples import defects
from tests.checker.lincheck.lincheck_histories import SUBJECTS, history
from tests.checker.lincheck.lincheck_oracle import linearizable

S = 1_000_000_000


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_dropping_crashed_ops_at_once_changes_no_verdict(name, monkeypatch):
    monkeypatch.setattr(outlived, "FIRST", 0)
    monkeypatch.setattr(outlived, "FEW", 0)
    for seed in range(25):
        random = Random(f"outlived {name} {seed}")
        events = history(
            random,
            SUBJECTS[name],
            random.randrange(3, 9),
            processes=3,
            crash=0.4,
            spoil=0.6,
            failed_release="nothing",
            holds=name == "lease-mutex" and seed % 2 == 0,
        )
        model = SUBJECTS[name].model("nothing")
        assert check(events, model, fast=False).valid is linearizable(events, model), seed


class Told:
    """A history of a lock with leases of a second, each op by a process of its own."""

    def __init__(self):
        self.events = []
        self.now = 0

    def op(self, process, f, value, end="ok", **said):
        for kind, what in (("invoke", value), (end, value | said)):
            self.now += 1_000_000
            self.events.append(
                {"process": process, "type": kind, "f": f, "value": what, "time": self.now}
            )

    def hold(self, name, end="ok"):
        """Return a hold of a process with this number."""
        self.op(name, "acquire", {"ttl": S}, hold=str(name))
        self.op(name, "release", {"hold": str(name)}, end)

    def walk(self, width=1):
        model = named("lease-mutex", failed_release="ended")
        [operations] = objects(enumerate(self.events, 1), model).parts.values()
        return Walk.begin(operations, model, UNLIMITED, width=width)


def test_little_state_is_kept_for_many_dead_holders():
    told = Told()
    for number in range(400):
        told.hold(number, "info" if number % 2 else "ok")
        told.op(5000 + number, "acquire", {"ttl": S}, "info")
        told.now += 2 * S
    walk = told.walk()
    assert walk.to_end() is None
    assert len(walk.search.crashed.counts) <= 2 * outlived.FIRST
    assert walk.leases is not None
    assert len(walk.leases.offered) <= 2 * outlived.FIRST


def test_ways_that_differ_only_in_expired_leases_merge(monkeypatch):
    """Each holder's lease expired, or its release happened: no op can tell these two ways apart."""
    told = Told()
    for number in range(200):
        told.hold(number, "info")
        told.now += 2 * S
    told.op(1000, "acquire", {"ttl": S}, hold="1000")
    told.now += 2 * S
    told.op(1000, "release", {"hold": "1000"})
    walk = told.walk(width=None)
    assert walk.to_end() is None
    assert walk.search.exact
    assert sum(map(len, walk.search.configurations.values())) <= 2 * outlived.FEW
    walk.outlived.drop(walk.search, walk.leases, 1 << 40)
    states = {walk.search.table.states[state] for state, _ in walk.search.configurations}
    assert [state.expired for state in states] == [frozenset()]
    assert [used for own in walk.search.configurations.values() for used, _ in own] == [0]


def test_overuse_of_an_endless_class_stays_recorded():
    crashed = Crashed(named("lease-mutex"), frozenset())
    acquire = Action("acquire", owner="x")
    crashed.want(acquire)
    crashed.want(Action("release", owner="x"))
    crashed.add(7, acquire)
    assert crashed.droppable(7, [0])
    unit = crashed.unit(7)
    assert crashed.droppable(7, [0, unit])
    assert crashed.cleared([7], unit) == 0
    [(_, _, over)] = crashed.moves(FREE, unit, False)
    assert not crashed.droppable(7, [0, unit + over])


def test_a_release_that_never_returned_is_kept_while_its_hold_may_be_on(monkeypatch):
    monkeypatch.setattr(outlived, "FIRST", 0)
    told = Told()
    told.hold(1, "info")
    # of no use to any op, so that the search looks it through
    told.op(9, "acquire", {"ttl": S}, "info")
    told.hold(2)  # long before the lease of the first expires: its release has happened
    assert told.walk().to_end() is None
    told.hold(3)
    told.hold(4)
    assert told.walk().to_end() is None


def test_a_grant_without_answer_is_kept_for_a_process_that_continues(monkeypatch):
    monkeypatch.setattr(outlived, "FIRST", 0)
    told = Told()
    told.op(1, "acquire", {"ttl": S, "hold": "a"}, "info")
    told.op(2, "acquire", {"ttl": S, "hold": "b"}, "info")
    told.op(1, "release", {"hold": "a"})  # so it had been granted
    assert told.walk().to_end() is None


@pytest.fixture
def at_once(monkeypatch):
    """Drop every useless op after each event."""
    monkeypatch.setattr(outlived, "FIRST", 0)
    monkeypatch.setattr(outlived, "FEW", 0)


def test_a_lease_that_has_yet_to_expire_may_make_way_for_an_open_op(at_once):
    told = Told()
    told.op(1, "acquire", {"ttl": S}, hold="a")
    told.op(2, "acquire", {"ttl": S, "hold": "b"}, "info")  # granted when the first has expired
    told.now += 2 * S
    told.op(2, "extend", {"ttl": S, "hold": "b"})
    assert told.walk().to_end() is None


def test_a_lease_that_a_later_extension_gives_may_make_way_too(at_once):
    told = Told()
    told.op(1, "acquire", {}, hold="a")  # without a lease, it would never end
    told.op(2, "acquire", {"ttl": 9 * S, "hold": "b"}, "info")
    told.op(1, "extend", {"ttl": S, "hold": "a"})
    told.now += 2 * S
    told.op(2, "extend", {"ttl": 9 * S, "hold": "b"})
    assert told.walk().to_end() is None


def test_that_a_grant_has_expired_is_known_until_its_release(at_once):
    told = Told()
    told.op(1, "acquire", {"ttl": S}, hold="a")
    told.now += 2 * S
    told.op(2, "acquire", {"ttl": 9 * S}, hold="b")
    told.op(3, "acquire", {"ttl": S}, "info")
    told.op(1, "release", {"hold": "a"})
    walk = told.walk(width=None)
    assert walk.copy().to_end() is None
    half = walk.copy()
    half.to(5)
    assert half.copy().to_end() is None
    walk.to_end()
    states = walk.search.table.states
    assert {states[state].expired for state, _ in walk.search.configurations} == {frozenset()}


@pytest.mark.parametrize(
    ("hint", "kept"),
    [
        ({}, 0),
        ({"wants": lambda action: UNSAID}, 20),  # any op may help the releases
        ({"leads": lambda action: UNSAID, "gives": lambda action: UNSAID}, 40),
    ],
)
def test_nothing_is_dropped_without_the_model_s_hints(hint, kept):
    told = Told()
    for number in range(20):
        told.op(number, "acquire", {"ttl": S}, hold=str(number))
        told.now += 2 * S
        told.op(number, "release", {"hold": str(number)})
        told.op(100 + number, "acquire", {"ttl": S}, "info")
        told.op(200 + number, "release", {"hold": "none"}, "info")
    model = replace(named("lease-mutex", failed_release="ended"), **hint)
    [operations] = objects(enumerate(told.events, 1), model).parts.values()
    walk = Walk.begin(operations, model, UNLIMITED, width=1)
    assert walk.to_end() is None
    walk.outlived.drop(walk.search, walk.leases, 1 << 40)
    left = [walk.search.table.actions[number] for number in walk.search.crashed.counts]
    assert sum(action.f != "expire" for action in left) == kept


def test_a_counterexample_is_right_although_ops_were_dropped(at_once):
    shown = 0
    for seed in range(120):
        random = Random(f"shown {seed}")
        events = history(
            random,
            SUBJECTS["lease-mutex"],
            random.randrange(3, 8),
            processes=3,
            crash=0.4,
            spoil=0.8,
            failed_release="nothing",
        )
        verdict = check(events, SUBJECTS["lease-mutex"].model("nothing"), fast=False)
        if verdict.valid is False:
            shown += 1
            assert list(defects(events, verdict)) == []
    assert shown > 10


def test_it_checks_again_when_the_state_has_doubled():
    told = Told()
    told.hold(1)
    walk = told.walk()
    walk.to_end()
    for number in range(100):
        walk.search.loose(Action("expire", number, owner="x"))
    walk.outlived.drop(walk.search, walk.leases, 1 << 40)
    assert (len(walk.search.crashed.counts), walk.outlived.at) == (0, outlived.FIRST)
    for number in range(100):  # later events are unknown
        walk.search.loose(Action("acquire", number, owner="x"))
        walk.search.loose(Action("release", owner=("x", number)))
    coming = Outlived(walk.search.model, walk.search.model.leads, {"x": 2}, 0, 0)
    coming.drop(walk.search, walk.leases, 1)
    assert len(walk.search.crashed.counts) == 100
    assert (coming.at, coming.many) == (200, outlived.FEW)
    assert (coming.copy().at, coming.copy().many) == (200, outlived.FEW)
    [(key, entries)] = walk.search.configurations.items()
    walk.search.configurations = {(key[0], mask): entries for mask in range(100)}
    coming.drop(walk.search, walk.leases, 1)
    assert coming.many == 200
