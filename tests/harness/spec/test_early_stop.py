"""A run stops at the first violation of selected checkers, and names it."""

from __future__ import annotations

import pytest

from fencepost.checker.verdict import Verdict
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec.early_stop import check_until, first_violation, stopping, stops

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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("overlap>2", None),
        ("overlap>500ms", None),
        ("overlap>", "until overlap>: "),
        ("overlap>-1s", "until overlap>-1s: "),
        ("overlap=2s", "until overlap=2s: there is no such checker"),
    ],
)
def test_an_overlap_needs_a_time(name, message):
    if message is None:
        check_until((name,), {"leadership": None})
        return
    with pytest.raises(BadArguments) as error:
        check_until((name,), {"leadership": None})
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("checkers", [{"leadership": "the lock is not an elector"}, {}])
def test_an_overlap_needs_an_elector(checkers):
    with pytest.raises(BadArguments, match=r"until overlap>2s: this test does not run leadership"):
        check_until(("overlap>2s",), checkers)


@pytest.mark.parametrize(
    ("until", "stopped"),
    [
        (["overlap>2s"], True),
        (["overlap>3s"], False),
        (["overlap>3s", "overlap>1s"], True),
        (["overlap>3s", "leadership"], True),
        (["overlap>3s", "any"], True),
        (["resource"], False),
    ],
)
def test_an_overlap_stops_a_run_if_it_is_long_enough(until, stopped):
    test = {"checkers": ["leadership", "resource"], "until": until}
    assert stops("leadership", False, {"overlap_longest_s": 2.5}, test) is stopped
    assert not stops("leadership", True, {"overlap_longest_s": 0.0}, test)


def test_an_older_run_that_stops_at_any_violation_stops_at_any_overlap():
    test = {"checkers": ["leadership"], "until_violation": True}
    assert stops("leadership", False, {"overlap_longest_s": 0.1}, test)


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
