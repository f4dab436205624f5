"""A run stops at the first violation of selected checkers, and names it."""

from __future__ import annotations

import pytest

from fencepost.checker.verdict import Verdict
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec.early_stop import check_until, first_violation, stopping

TEST = {"checkers": ["lease_exclusion", "mutual_exclusion", "liveness"], "until": ["any"]}


@pytest.mark.parametrize(
    ("stored", "names"),
    [
        ({}, []),
        ({"until": []}, []),
        ({"until": ["any"]}, ["lease_exclusion", "mutual_exclusion"]),
        ({"until": ["mutual_exclusion"]}, ["mutual_exclusion"]),
        # Older versions stored it like this.
        ({"until_violation": True}, ["lease_exclusion", "mutual_exclusion"]),
        ({"until_violation": False}, []),
    ],
)
def test_the_checkers_that_stop_a_run_are_those_its_description_names(stored, names):
    assert stopping({"checkers": TEST["checkers"]} | stored) == names


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("owner", "until owner: there is no such checker; choose from: resource, any"),
        ("run", "until run: there is no such checker; choose from: resource, any"),
        ("fencing", "until fencing: this test does not run it (no token); choose from: resource,"),
        (
            "liveness",
            "until liveness: it can only be judged once the run has ended; choose from: res",
        ),
        (
            "faults",
            "until faults: it can only be judged once the run has ended; choose from: resource",
        ),
    ],
)
def test_a_checker_that_cannot_stop_a_run_is_refused_with_the_reason(name, message):
    checkers = {"resource": None, "fencing": "no token", "liveness": None}
    check_until(("resource", "any"), checkers)
    with pytest.raises(BadArguments) as error:
        check_until(("resource", name), checkers)
    assert str(error.value).startswith(message)


def test_the_first_violation_is_the_earliest_evidence_of_any_checker_that_said_no():
    verdicts = {
        "fencing": Verdict(False, "", [{"what": "late", "time_ns": 3_000_000_000}]),
        "lease_exclusion": Verdict(
            False, "", [{"what": "b", "time_ns": 2_000_000_000}, {"what": "x"}]
        ),
        "faults": Verdict("unknown", "", [{"what": "no receipt", "time_ns": 1}]),
    }
    assert first_violation(verdicts) == {"time_s": 2.0, "checker": "lease_exclusion", "what": "b"}
    assert first_violation({"resource": Verdict(True, "")}) is None
