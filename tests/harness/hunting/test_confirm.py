"""Real servers confirm a counterexample by the same outcome, or the difference is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checker.verdict import Verdict
from fencepost.harness.hunting.confirm import TRIES, confirm
from fencepost.harness.judge.judge import Outcome
from fencepost.hunt.bridge.bridge import Bridge
from fencepost.workloads.scenarios.scenario import Do, Scenario

SCENARIO = Scenario(
    "hunt-redlock", (), "", "", "none", (Do("client-1", "acquire"),), {"lease_exclusion": False}
)
PROVED = {"faults": Verdict(True, "All 2 faults have their receipts.")}
BROKEN = PROVED | {"lease_exclusion": Verdict(False, "1 of 2 holds.")}


def outcome(verdicts):
    return Outcome(Path(), "unknown", verdicts, {})


def confirmed(*came, cannot=()):
    """Return the confirmation of runs with these outcomes, and the messages meanwhile."""
    told = []
    left = list(came)
    found = confirm(Bridge(SCENARIO, (), cannot), lambda n: outcome(left.pop(0)), told.append)
    return found, told


def test_a_counterexample_is_confirmed_if_its_checker_fails():
    found, told = confirmed(BROKEN)
    assert found.confirmed
    assert found.sentence == (
        f"Confirmed on real servers, try 1 of up to {TRIES}: "
        "lease_exclusion is violated there, too."
    )
    assert told == []


def test_another_attempt_is_counted_and_the_difference_is_reported():
    kept = PROVED | {"lease_exclusion": Verdict(True, "None of 2 holds.")}
    found, told = confirmed(kept, BROKEN)
    assert found.confirmed
    assert "try 2 of up to 3" in found.sentence
    assert told == [
        "Try 1 of up to 3: lease_exclusion is True on real servers, and false in the simulation: "
        "None of 2 holds."
    ]


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (
            BROKEN | {"run": Verdict("unknown", "The schedule was not carried out: step 2.")},
            "step 2",
        ),
        (BROKEN | {"faults": Verdict("unknown", "1 fault has no receipt.")}, "no receipt"),
        (PROVED, "lease_exclusion did not run"),
        (PROVED | {"lease_exclusion": Verdict("unknown", "Too few holds.")}, "Too few holds"),
    ],
)
def test_any_other_outcome_confirms_nothing(verdicts, said):
    found, _ = confirmed(verdicts, verdicts, verdicts)
    assert not found.confirmed
    assert found.sentence.startswith("Not confirmed in 3 tries. The difference: ")
    assert said in found.sentence


def test_a_schedule_that_servers_cannot_run_is_skipped_and_confirms_nothing():
    found, _ = confirmed(cannot=("cannot be played: a request arrives twice",))
    assert not found.confirmed
    assert found.sentence == "Not confirmed: cannot be played: a request arrives twice."
