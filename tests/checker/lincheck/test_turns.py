"""Ways around crashed ops take turns, by the effort that each has spent."""

from __future__ import annotations

from itertools import islice

import pytest

from fencepost.checker.lincheck.budget import UNLIMITED
from fencepost.checker.lincheck.linearize import _in_turns, explore, relaxed
from fencepost.checker.lincheck.models import named
from fencepost.checker.lincheck.operation import objects

MODEL = named("cas-register")


def way(name, efforts, answer, log):
    for effort in efforts:
        log.append(name)
        yield effort
    return answer


@pytest.mark.parametrize(
    ("dear", "cheap", "turns"),
    [([3, 3], [1, 1, 1, 1, 1, 1], "abbbabbb"), ([1, 5], [2, 2, 2, 2], "ababb"), ([0], [1], "a")],
)
def test_the_way_that_has_had_the_least_effort_is_next(dear, cheap, turns):
    log = []
    assert _in_turns([way("a", dear, "first", log), way("b", cheap, "second", log)]) == "first"
    assert "".join(log) == turns


def test_a_way_without_an_answer_leaves_the_turns_to_the_others():
    log = []
    assert _in_turns([way("a", [1], None, log), way("b", [1] * 3, "second", log)]) == "second"
    assert "".join(log) == "abbb"


def operations(*told):
    """Return ops from (f, value, type), each by a process of its own; a read returns its value."""
    events = []
    for process, (f, value, type) in enumerate(told):
        asked = None if f == "read" else value
        events.append({"process": process, "type": "invoke", "f": f, "value": asked})
        events.append({"process": process, "type": type, "f": f, "value": value})
    [found] = objects(enumerate(events, 1), MODEL).parts.values()
    return found


def test_an_op_that_was_overused_before_stays_counted():
    """1 is read three times after 0 was written; one write and one cas could have given it."""
    rounds = [("write", 0, "ok"), ("read", 1, "ok")] * 3
    told = operations(("write", 1, "info"), ("cas", [0, 1], "info"), *rounds)
    search = relaxed(told, MODEL, UNLIMITED, False)
    ended = False

    def turns():
        nonlocal ended
        answer = yield from search
        ended = answer is not None and answer[1] == told[-1]

    assert len(list(islice(turns(), 20))) < 20
    assert ended


@pytest.mark.parametrize("crashed", [[], [("write", 1, "info")]])
def test_paths_are_kept_only_where_they_are_asked_for(crashed):
    told = operations(*crashed, ("write", 2, "ok"), ("read", 2, "ok"))
    for trace in (False, True):
        asked = {"trace": True} if trace else {}
        search, _ = explore(told, MODEL, UNLIMITED, **asked)
        [(_, path), *_] = next(iter(search.configurations.values()))
        assert (path is not None) is trace
