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


def fault(family, target, start, end, name="f", **more):
    about = {"fault": name, "targets": [target], "receipt": {"proved": True, "how": ""}}
    nothing = {"impairs": [], "links": [], "forgets": False} | more
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


def meets(kind, client, start, end):
    """A fault of a client's requests."""
    links = [[client, "kubernetes-1"]]
    words = {"arguments": {"kind": kind, "words": f"requests of {client} {kind}"}}
    return fault(
        "http", client, start, end, f"http-{start}", impairs=[client], links=links, **words
    )


def test_each_overlap_names_the_fault_that_was_on_when_the_next_leader_began():
    rows = [
        *led(0, 10, [20, 60, 100], 110), *meets("hang", "client-0", 15, 105),
        *led(1, 70, [80, 120, 180], 190), *meets("reset", "client-1", 130, 200),
        *led(2, 160, [170], 175),
    ]  # fmt: skip
    verdict = leadership(events(*sorted(rows, key=lambda row: row[0])), TEST)
    first, second = verdict.evidence
    assert "requests of client-0 hang (from 0.015 s to 0.105 s)" in first["what"]
    assert "requests of client-1 reset (from 0.130 s to 0.200 s)" in second["what"]
    for one, client in ((first, "client-0"), (second, "client-1")):
        (link,) = [link for link in one["cause"] if link["sort"] == "kept-by-fault"]
        assert (link["family"], link["nodes"], link["sure"]) == ("http", [client], False)
    assert "the first at 0.070 s (likely: requests of client-0 hang)" in verdict.summary


def test_a_reset_that_has_ended_is_named_if_the_work_never_ended_since():
    rows = [*led(0, 10, [20, 60, 100], 110), *meets("reset", "client-0", 15, 50)]
    rows += led(1, 70, [80], 120)
    verdict = leadership(events(*sorted(rows, key=lambda row: row[0])), TEST)
    assert "requests of client-0 reset (from 0.015 s to 0.050 s)" in verdict.evidence[0]["what"]


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        # The lease is 100 ms. The next leader begins at 300 ms: it was renewed before 200 ms.
        ((150, 210), (280, 350), {0.15}),  # a request from before still hangs
        ((150, 200), (280, 350), {0.15}),
        ((150, 199), (280, 350), {0.28}),  # it was renewed after that
        ((150, 350), (250, 350), {0.15, 0.25}),
        ((150, 350), (251, 350), {0.15}),  # too late to keep it from a renewal
        ((150, 199), (201, 220), {0.201}),
        ((100, 150), (160, 199), {0.16}),  # nothing else: the last one before
    ],
)
def test_the_fault_that_is_named_kept_the_leader_from_renewing_its_lease(first, second, named):
    rows = [*led(0, 10, range(20, 340, 20), 345), *meets("hang", "client-0", *first)]
    rows += [*meets("429", "client-0", *second), *led(1, 300, [310], 320)]
    verdict = leadership(events(*sorted(rows, key=lambda row: row[0])), TEST)
    causes = verdict.evidence[0]["cause"]
    kept = {one["time_ns"] / 1e9 for one in causes if one["sort"] == "kept-by-fault"}
    assert kept == named


def test_a_leader_that_outlasts_several_others_does_so_for_the_fault_at_the_first_one():
    rows = [*led(0, 10, range(20, 700, 20), 710), *meets("reset", "client-0", 50, 120)]
    rows += [*led(1, 160, [170, 200], 300), *meets("hang", "client-0", 350, 480)]
    rows += led(2, 450, [460, 500], 600)
    verdict = leadership(events(*sorted(rows, key=lambda row: row[0])), TEST)
    first, second = verdict.evidence
    assert (first["holds"], second["holds"]) == (["0-1", "1-1"], ["0-1", "2-1"])
    assert first["cause"] == second["cause"]
    assert "reset (from 0.050 s to 0.120 s)" in second["what"] and "hang" not in second["what"]


def test_a_fault_of_another_client_is_not_named():
    rows = [*led(0, 10, [20, 60, 100], 110), *meets("hang", "client-2", 15, 105)]
    rows += led(1, 70, [80], 120)
    verdict = leadership(events(*sorted(rows, key=lambda row: row[0])), TEST)
    assert "client-2" not in str(verdict.evidence) + verdict.summary


def test_work_after_stopped_is_blamed_on_no_fault():
    rows = [*led(0, 10, [20, 60, 100], 110, lost=40), *meets("hang", "client-0", 15, 105)]
    rows += led(1, 70, [80], 120)
    verdict = leadership(events(*sorted(rows, key=lambda row: row[0])), TEST)
    (row,) = verdict.evidence
    assert "although its elector called stopped at 0.040 s: two at work for 0.030 s." in row["what"]
    assert "cause" not in row and "likely" not in verdict.summary


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
