"""A long check distributes the remaining objects over several processes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fencepost.checker.lincheck import verdict
from fencepost.checker.lincheck.budget import Exhausted
from fencepost.checker.lincheck.models import named
from fencepost.checker.lincheck.verdict import Failure, check


def put_and_got(*got):
    """Return a key for each value that is read where "1" was written."""
    for key, value in enumerate(map(str, got)):
        for process, f, told in ((0, "put", "1"), (1, "get", value)):
            for kind in ("invoke", "ok"):
                yield {"process": process, "type": kind, "f": f, "value": [str(key), told]}


@pytest.fixture
def spread(monkeypatch):
    """Make every check long. `answers`: the processes' next answers; `told`: their requests."""
    answers, told = [], []

    def in_processes(parts, waiting, *more):
        told.append((set(parts), list(waiting), more))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(verdict, "SPREAD_AFTER_S", -1.0)
    monkeypatch.setattr(verdict, "in_processes", in_processes)
    return SimpleNamespace(answers=answers, told=told)


def test_the_object_that_the_processes_find_is_the_one_that_fails(spread):
    operation = check(put_and_got(2), "kv").near
    assert operation is not None
    spread.answers += [(("1",), Failure(operation, True)), (("1",), Failure(operation, False))]
    found = check(put_and_got(1, 1), "kv")
    assert (found.valid, found.key) == (False, "1")
    assert (found.failed, found.near) == (operation, None)
    found = check(put_and_got(1, 1), "kv")
    assert (found.failed, found.near) == (None, operation)


def test_where_the_processes_find_none_the_history_is_linearizable(spread):
    spread.answers.append((None, None))
    assert check(put_and_got(1, 2, 1), "kv").valid is True


def test_a_limit_that_a_process_reaches_leaves_it_unknown(spread):
    spread.answers.append(Exhausted("no time"))
    found = check(put_and_got(1, 1), "kv")
    assert (found.valid, found.reason) == ("unknown", "no time")


@pytest.mark.parametrize("fast", [True, False])
def test_the_processes_receive_the_remaining_objects_and_the_options(spread, fast):
    spread.answers.append((None, None))
    model = named("kv")
    check(put_and_got(1, 1), model, time_limit=60, fast=fast)
    [(parts, waiting, (told, budget, quick))] = spread.told
    assert (parts, waiting) == ({"0", "1"}, ["0", "1"])
    assert (told, budget.time_limit, quick) == (model, 60, fast)


def test_where_there_can_be_no_processes_one_object_after_another_is_decided_here(spread):
    spread.answers += [None, None]
    found = check(put_and_got(1, 1, 2), "kv")
    assert (found.valid, found.key) == (False, "2")
    assert [waiting for _, waiting, _ in spread.told] == [["0", "1", "2"], ["1", "2"]]


def test_a_short_check_and_the_last_object_need_no_processes(spread, monkeypatch):
    assert check(put_and_got(1), "kv").valid is True
    monkeypatch.setattr(verdict, "SPREAD_AFTER_S", 60.0)
    assert check(put_and_got(1, 1, 1), "kv").valid is True
    assert spread.told == []


def test_where_memory_runs_out_it_is_unknown(monkeypatch):
    def decide(*_):
        raise MemoryError

    monkeypatch.setattr(verdict, "decide", decide)
    found = check(put_and_got(1, 1), "kv")
    assert (found.valid, found.reason) == ("unknown", "out of memory")
    assert (found.operations, set(found.parts)) == (4, {"0", "1"})
