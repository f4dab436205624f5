"""Records drop the crashed ops that every configuration has used, and these ops stay used."""

import pytest

from fencepost.checker.lincheck import check
from fencepost.checker.lincheck.budget import UNLIMITED
from fencepost.checker.lincheck.linearize import Walk
from fencepost.checker.lincheck.model import Action
from fencepost.checker.lincheck.models import named
from fencepost.checker.lincheck.operation import objects
from fencepost.checker.lincheck.search import WRITE_OFF_AT, Search
from tests.checker.lincheck.lincheck_oracle import linearizable

MODEL = named("register", 0)


class Told:
    """A history of a register, built op by op, each op by a new process."""

    def __init__(self):
        self.events = []
        self.process = 0

    def op(self, f, value, end="ok"):
        self.process += 1
        asked = None if f == "read" else value
        for kind, said in (("invoke", asked), (end, value)):
            self.events.append({"process": self.process, "type": kind, "f": f, "value": said})

    def searched(self):
        [operations] = objects(enumerate(self.events, 1), MODEL).parts.values()
        walk = Walk.begin(operations, MODEL, UNLIMITED)
        return walk.to_end(), walk.search


def crashed_and_read(count, times=1):
    """Add open writes of 1 to `count`, `times` of each, and then a read of each."""
    told = Told()
    for value in range(1, count + 1):
        for _ in range(times):
            told.op("write", value, "info")
    for value in range(1, count + 1):
        told.op("read", value)
    return told


def test_ops_that_all_configurations_have_used_are_dropped_from_records():
    for count in (WRITE_OFF_AT, WRITE_OFF_AT + 1, 3 * WRITE_OFF_AT):
        failed, search = crashed_and_read(count).searched()
        assert failed is None
        assert len(search.crashed.shifts) <= WRITE_OFF_AT
        assert len(search.crashed.counts) == len(search.crashed.shifts)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_used_up_ops_stay_used_up_after_a_write_off(times):
    told = crashed_and_read(WRITE_OFF_AT + 4, times)
    for _ in range(times - 1):
        told.op("read", WRITE_OFF_AT + 4)  # still present: needs no write
        told.op("write", 99)
        told.op("read", 1)
    assert told.searched()[0] is None
    told.op("write", 99)
    told.op("read", 2)
    assert (told.searched()[0] is None) is (times > 1)
    told.op("write", 99)
    told.op("read", 1)
    failed, _ = told.searched()
    assert failed is not None
    assert failed.action.result == (1 if times > 1 else 2)


def test_records_continue_from_the_write_off():
    told = crashed_and_read(WRITE_OFF_AT + 1, 2)
    before = len(told.events)
    _, search = told.searched()
    [entries] = search.configurations.values()
    assert [used for used, _ in entries] == [0]
    assert set(search.crashed.counts.values()) == {1}
    for value in (1, 2, 3):
        told.op("read", value)
    failed, search = told.searched()
    assert failed is None
    [entries] = search.configurations.values()
    [(used, _)] = entries
    assert [used >> shift & 7 for shift in search.crashed.shifts.values()].count(1) == 3
    assert len(told.events) == before + 6


def test_the_next_write_off_happens_at_twice_the_remaining_ops():
    _, search = crashed_and_read(WRITE_OFF_AT + 1, 2).searched()
    assert len(search.crashed.shifts) == WRITE_OFF_AT + 1  # one op of each class is left
    assert search.write_off_at == 2 * (WRITE_OFF_AT + 1)
    _, search = crashed_and_read(WRITE_OFF_AT + 1).searched()
    assert search.write_off_at == WRITE_OFF_AT


def test_verdicts_are_those_of_brute_force_however_early_records_are_cut(monkeypatch):
    monkeypatch.setattr("fencepost.checker.lincheck.search.WRITE_OFF_AT", 0)
    for text in (
        "w1i w1i r1 w2 r1",
        "w1i w1i r1 w2 r1 w2 r1",
        "w1i w2i r1 r2 r1",
        "w1i w2i r2 r1 w3 r2",
    ):
        told = Told()
        for word in text.split():
            told.op(
                "write" if word[0] == "w" else "read", int(word[1]), "info" if word[2:] else "ok"
            )
        assert check(told.events, MODEL, fast=False).valid is linearizable(told.events, MODEL), text


def test_an_observer_that_never_returns_leaves_no_mark_in_the_records():
    search = Search.begin(MODEL)
    search.invoke(1, Action("read", result=0))
    search.invoke(2, Action("write", 5))
    assert search.complete(2)  # the read of 0 is taken before it
    search.crash(1)
    assert [used for own in search.configurations.values() for used, _ in own] == [0]
    assert search.crashed.counts == {}
