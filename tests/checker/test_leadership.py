"""`leadership`: two leaders at work, and the figures of an election."""

from __future__ import annotations

from random import Random

import pytest

from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import History, Op
from fencepost.checker.leadership import leadership
from tests.oracles.leadership import draw, expected

MS = 1_000_000
TEST = {"ttl_ms": 100, "lock": {"name": "x", "elector": True}}


def events(*rows):
    ops = []
    for index, (at, process, type, f, value) in enumerate(rows):
        node = None if process == "nemesis" else f"client-{process}"
        ops.append(Op(index, at * MS, process, type, f, value, node=node))
    return History(ops)


def led(process, start, beats, end, f="close", lost=None):
    """The events of a reign."""
    hold = {"lock": "orders", "hold": f"{process}-1"}
    rows = [
        (start - 1, process, "invoke", "acquire", {"lock": "orders", "ttl": 100 * MS}),
        (start, process, "ok", "acquire", hold | {"ttl": 100 * MS}),
    ]
    for at in beats:
        about = {"resource": "account", "hold": f"{process}-1"}
        rows += [(at, process, "invoke", "read", about), (at + 1, process, "ok", "read", about)]
    if lost is not None:
        rows.append((lost, process, "info", "lost", hold))
    about = hold if f == "release" else {}
    rows += [(end, process, "invoke", f, about), (end + 1, process, "ok", f, about)]
    return rows


def fault(family, target, start, end):
    about = {"fault": "f", "targets": [target], "receipt": {"proved": True, "how": ""}}
    nothing = {"impairs": [], "links": [], "forgets": False}
    return [
        (start, "nemesis", "invoke", family, about | nothing | {"phase": "start"}),
        (start, "nemesis", "ok", family, about | nothing | {"phase": "start"}),
        (end, "nemesis", "invoke", family, about | {"phase": "end"}),
        (end, "nemesis", "ok", family, about | {"phase": "end"}),
    ]


def judged(*parts):
    rows = sorted((row for part in parts for row in part), key=lambda row: row[0])
    return leadership(events(*rows), TEST)


def test_a_leader_that_works_while_the_next_one_does_violates_leadership():
    verdict = judged(led(0, 10, [20, 60, 100], 110), led(1, 70, [80], 120, "release"))
    assert verdict.valid is False
    assert verdict.details["overlap_longest_s"] == verdict.details["overlap_total_s"] == 0.03
    assert "two at work for 0.030 s" in verdict.evidence[0]["what"]
    assert verdict.evidence[0]["holds"] == ["0-1", "1-1"]


def test_a_leader_that_only_believes_and_does_not_work_is_not_accused():
    assert judged(led(0, 10, [20, 60], 110), led(1, 70, [80], 120)).valid is True


def test_one_reign_decides_nothing():
    assert judged(led(0, 10, [20], 30)).valid == "unknown"


def test_overlaps_within_the_bounds_of_the_clocks_are_not_counted():
    rows = sorted([*led(0, 10, [20, 75], 110), *led(1, 70, [80], 120)], key=lambda row: row[0])
    clocks = {"client-0": {"bound_ns": 3 * MS}, "client-1": {"bound_ns": 3 * MS}}
    verdict = leadership(events(*rows), TEST | {"clocks": clocks})
    assert verdict.valid is True and verdict.details["clock_error_s"] == 0.006


@pytest.mark.parametrize(
    ("faults", "first", "cause", "took_s"),
    [
        ([], led(0, 10, [20], 40, "release"), "resign", 0.03),
        ([], led(0, 10, [20], 40), "exit", 0.03),
        ([], led(0, 10, [20], 45, lost=40), "no cause", 0.03),
        (fault("kill", "client-0", 30, 35), led(0, 10, [20], 40), "kill", 0.04),
        (fault("pause", "client-0", 30, 35), led(0, 10, [20], 45, lost=40), "pause", 0.04),
        (fault("pause", "redis-1", 30, 35), led(0, 10, [20], 45, lost=40), "fault", 0.03),
    ],
)
def test_a_take_over_counts_from_its_cause(faults, first, cause, took_s):
    verdict = judged(first, led(1, 70, [80], 120), faults)
    assert verdict.details["take_over_s"] == {
        cause: {"count": 1, "median": took_s, "longest": took_s}
    }
    assert verdict.details["changes_without_cause"] == (cause == "no cause")


def test_beats_that_begin_after_stopped_are_counted():
    verdict = judged(led(0, 10, [20, 50, 55], 60, lost=40), led(1, 70, [80], 120))
    assert verdict.details["beats_after_stopped"] == 2
    assert "2 beats of work begun after stopped" in verdict.summary


def test_it_applies_to_electors_only():
    checker = CHECKERS["leadership"]
    assert checker.applies(TEST) is None
    assert checker.applies({"lock": {"name": "redis"}}) == "the lock is not an elector"


@pytest.mark.parametrize("part", range(10))
def test_the_figures_are_those_of_an_oracle_that_looks_at_each_millisecond(part):
    overlaps = 0
    for seed in range(part * 60, part * 60 + 60):
        ops, truth = draw(Random(seed))
        verdict, wanted = leadership(History(ops), TEST), expected(truth)
        assert {name: verdict.details[name] for name in wanted} == wanted, seed
        overlaps += verdict.valid is False
        assert (verdict.valid is False) == (wanted["overlap_total_s"] > 0), seed
    assert 5 < overlaps < 55
