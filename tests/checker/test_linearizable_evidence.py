"""A verdict names the op that is not linearizable and the reason, within its time limit."""

from __future__ import annotations

import pytest

from fencepost.checker.lincheck.budget import Budget
from tests.checker.linearizable_stories import CLOCKS, verdict
from tests.histories import MS


def test_a_search_that_does_not_end_leaves_it_unknown(story, monkeypatch):
    monkeypatch.setattr("fencepost.checker.linearizable._TIME_LIMIT_S", -1.0)
    monkeypatch.setattr("fencepost.checker.linearizable._MORE_NS", 0)
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary.startswith("The search was stopped: time limit of -1 s reached")
    assert found.evidence == []
    assert list(found.details) == ["model", "operations", "failed_release", "ends_with"]


def test_a_long_history_has_more_time_and_no_more_memory(story, monkeypatch):
    """The limit is a minute, and a fifth of a millisecond for each call; of memory, it is 1 GB."""
    limits = []
    starting = Budget.starting_now
    monkeypatch.setattr(
        "fencepost.checker.linearizable.Budget.starting_now",
        lambda *limit: limits.append(limit) or starting(*limit),
    )
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 5)
    story.grant(1, "b", 500, 1500)
    assert verdict(story).valid is True
    assert limits == [(pytest.approx(60.0006, abs=1e-9), 1000.0)]


def test_with_clocks_of_several_hosts_the_verdict_gives_the_longest_order(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500, asked=450)
    found = verdict(story, clocks=CLOCKS)
    assert found.summary == (
        "The lock's ops are not linearizable: no order respects every lease. The search got "
        "no further than 0.450 s."
    )
    assert found.evidence == [{"what": found.summary, "time_ns": 450 * MS, "ops": [2]}]


def test_the_counterexample_is_small_and_names_its_ops(story):
    story.grant(2, "z", 0, 1000, asked=0)
    story.release(2, "z", 0)
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500, asked=450)
    found = verdict(story)
    assert found.summary == (
        "client-1 (process 1): acquire, invoked at 0.450 s, is not linearizable: no order of the "
        "lock's operations that respects every lease can contain it: 1 (hold b) can't acquire: 0 "
        "(hold a) holds it and can't expire before 1.001000 s. No fault was on at that time."
    )
    assert found.evidence == [{"what": found.summary, "time_ns": 450 * MS, "ops": [4, 6]}]


def test_an_op_that_is_not_linearizable_is_reported_with_its_hold_and_the_active_fault(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 5)
    story.extend(0, "a", 20, 1020)
    story.fault("pause", 2, 8, ["s1"])
    story.fault("pause", 19, 30, ["s2"])
    found = verdict(story)
    assert found.valid is False
    assert (
        "client-0 (process 0): extend of hold a, invoked at 0.020 s, is not linearizable: "
        in found.summary
    )
    assert found.summary.endswith(" On at that time: pause of s2 (from 0.019 s).")
    assert found.details == {
        "model": "lease-mutex",
        "operations": 3,
        "failed_release": "ended",
        "ends_with": "lease",
    }


def test_a_fault_that_begins_while_the_op_is_under_way_is_named(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500, asked=450)
    story.fault("pause", 480, 600, ["s1"])
    assert verdict(story).summary.endswith(" On at that time: pause of s1 (from 0.480 s).")


def test_without_time_for_evidence_the_op_that_failed_is_reported_without_a_reason(
    story, monkeypatch
):
    monkeypatch.setattr("fencepost.checker.linearizable._EVIDENCE_S", -1.0)
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500, asked=450)
    found = verdict(story)
    assert found.summary == (
        "client-1 (process 1): acquire, invoked at 0.450 s, is not linearizable: no order of the "
        "lock's operations that respects every lease can contain it. No fault was on at that time."
    )
    assert found.evidence == [{"what": found.summary, "time_ns": 450 * MS, "ops": [2]}]


def test_without_time_to_find_that_op_the_progress_of_the_search_is_reported(story, monkeypatch):
    """The search drops ways, and may stop at another op than the first that fails.

    A token is given twice, and an acquire may or may not have been granted.
    """
    monkeypatch.setattr("fencepost.checker.linearizable._EVIDENCE_S", -1.0)
    story.grant(1, "z", 10, 8, asked=5, ttl=3)
    story.grant(0, "a", 12, 21, asked=11, token=4, ttl=10)
    story.call(3, "acquire", 18, None, {"lock": "orders", "ttl": 10 * MS})
    story.release(1, "z", 19, 24)
    story.grant(2, "b", 32, 56, asked=26, token=4, ttl=30)
    found = verdict(story)
    assert found.summary == (
        "The lock's ops are not linearizable: no order respects every lease. The search got "
        "no further than 0.026 s."
    )
    assert found.valid is False
    assert found.evidence == [{"what": found.summary, "time_ns": 26 * MS, "ops": [7]}]
    assert found.details == {
        "model": "lease-mutex",
        "operations": 5,
        "failed_release": "ended",
        "ends_with": "lease",
    }
