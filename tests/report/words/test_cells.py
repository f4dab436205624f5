"""The summary of a cell's runs: the state, the rates with their intervals, the words."""

from __future__ import annotations

import pytest

from fencepost.report.words.cells import STATES, figure, summed
from tests.report.matrices import cell, run, violated


def state(*runs):
    return summed(cell(*runs))["marks"]


def test_a_cell_in_which_nothing_was_wrong_is_kept_and_never_called_safe():
    found = summed(cell(run(), run(500)))
    assert (found["state"], found["holds"]) == ("kept", 1500)
    assert found["words"] == (
        "No violation was seen in 1,500 holds (95 %: at most 2 per 1,000, by the rule of three)."
    )
    assert not any("safe" in f"{one.word} {one.what}" for one in STATES.values())


@pytest.mark.parametrize(
    ("runs", "marks"),
    [
        ([run(), violated("service", 2)], ["broken"]),
        ([violated("service", 2), violated("data", 1)], ["broken", "damaged"]),
        ([violated("clients", 3)], ["believed"]),
        ([violated("clients", 3), violated("data", 1)], ["damaged"]),
        ([run(checkers={"liveness": False})], ["unavailable"]),
        ([run(0, granted=0)], ["unavailable"]),
        ([run(), run(questions={"service": "unknown"})], ["unknown"]),
        ([run(), {"round": 1, "seed": 2, "crashed": "no answer"}], ["unknown"]),
        ([{"round": 1, "seed": 2, "crashed": "no answer"}], ["unknown"]),
        ([], ["untested"]),
    ],
)
def test_the_state_of_a_cell_is_its_worst_and_other_violations_are_kept_with_it(runs, marks):
    assert state(*runs) == marks


def test_a_late_service_is_not_counted_as_one_that_granted_twice():
    late = run(checkers={"liveness": False}, service={"liveness": False},
               questions={"service": False})  # fmt: skip
    assert state(late) == ["unavailable"]


def test_a_rate_is_a_share_of_the_holds_of_all_runs_with_its_interval():
    # 15 of 148: Newcombe 1998, table I.
    found = summed(cell(violated("data", 10, holds=100), violated("data", 5, holds=48)))
    rate = found["violations"]["data"]
    assert (rate["count"], rate["runs"], rate["at_most"]) == (15, 2, None)
    assert rate["per_1000"] == pytest.approx(1000 * 15 / 148)
    assert (rate["low"], rate["high"]) == pytest.approx((57.8, 161.7), abs=0.05)
    assert (
        found["words"] == "Data was damaged in 15 holds, 101 per 1,000 (58 to 162), of 148 holds."
    )


def test_a_lock_without_deadlines_is_not_reported_to_have_granted_a_lease_twice():
    found = summed(cell(violated("service", 2, blind=True), run(blind=True)))
    assert found["words"].startswith(
        "The lock, which reports no deadline, was granted while another client still held "
        "it in 2 holds"
    )
    seeing = summed(cell(violated("service", 2, blind=True), run(blind=False)))
    assert seeing["words"].startswith("A lease was granted twice in 2 holds")


def test_an_unobserved_violation_has_a_bound_and_no_rate_of_nothing():
    rate = summed(cell(run(300)))["violations"]["service"]
    assert (rate["count"], rate["per_1000"], rate["at_most"]) == (0, 0, 10)
    rate = summed(cell(run(0, granted=0)))["violations"]["service"]
    assert (rate["per_1000"], rate["high"], rate["at_most"]) == (None, None, None)


def test_the_first_violation_is_given_as_a_median_over_all_judged_runs():
    def first(*times):
        runs = [run() if one is None else violated("service", 1, one) for one in times]
        rate = summed(cell(*runs))["violations"]["service"]
        return rate["first_s"], rate["first_low_s"], rate["first_high_s"]

    assert first(2.0) == (2.0, 0.0, None)
    assert first(4.0, None, None) == (None, 0.0, None)
    assert first(1.0, 2.0, 3.0, 4.0, 5.0, 6.0) == (3.5, 1.0, 6.0)
    assert first(1.0, 2.0, 3.0, 4.0, 5.0, None) == (3.5, 1.0, None)


def test_availability_is_the_rate_of_grants_against_that_without_faults():
    calm = summed(cell(run(1000)))
    found = summed(cell(run(250, longest_s=4.0), run(150, longest_s=2.0), fault="kill"), calm)
    assert (found["holds_a_second"], found["availability"]) == (20.0, 0.2)
    assert (found["longest_s"], found["longest_calm_s"]) == (4.0, 0.2)
    assert summed(cell(run(250)), summed(cell()))["availability"] is None


def test_a_checker_s_worst_verdict_comes_with_the_number_of_runs_for_each():
    found = summed(
        cell(run(), violated("service", 1), run(checkers={"lease_exclusion": "unknown"}))
    )
    assert found["checkers"]["lease_exclusion"] == {
        "worst": False, "true": 1, "false": 1, "unknown": 1,
    }  # fmt: skip


def test_a_cell_that_was_not_run_says_why():
    assert summed(cell(reason="its servers have none"))["words"] == (
        "Not tested: its servers have none."
    )
    assert summed(cell())["words"] == "Not tested: it was not run yet."
    crashed = {"round": 1, "seed": 2, "crashed": "client-1 did not come up"}
    assert summed(cell(crashed))["words"] == "Every run crashed: client-1 did not come up"


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (0.0461, "0.046"), (3.5, "3.5"), (9.97, "10"), (17.94, "18"), (1234.5, "1,234")],
)
def test_a_figure_has_the_digits_that_count(value, words):
    assert figure(value) == words
