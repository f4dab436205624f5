"""A suite: each run against what was published, and what it leaves when it ends early."""

from __future__ import annotations

import json

import pytest

from fencepost.checker.verdict import Verdict
from fencepost.harness.errors import BadArguments
from fencepost.harness.run import results, suite
from fencepost.harness.run.judge import Outcome
from fencepost.workloads.scenarios.registry import SUITES

GOOD = {"faults": Verdict(True, "All."), "resource": Verdict(True, "1 write.")}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    return tmp_path


@pytest.fixture
def controls():
    """The two runs of a suite that expect all to be well, and one that expects nothing."""
    items = suite.items("redis", 7)
    return [item for item in items if item.name in ("control", "random")]


def outcome(item, **changed):
    verdicts = {"faults": Verdict(True, "All."), **{n: Verdict(v, "") for n, v in
        item.expected.items()}, **changed}  # fmt: skip
    return Outcome(results.create(item.spec.name), True, verdicts, {})


@pytest.mark.parametrize("name", SUITES)
def test_every_run_of_a_suite_has_a_name_of_its_own_and_the_seed(name):
    items = suite.items(name, 7)
    assert {item.spec.seed for item in items} == {7}
    names = [item.spec.name for item in items]
    assert len({*names}) == len(names)


def test_a_run_that_came_out_otherwise_says_why(controls, folder):
    item = controls[0]
    broken = Verdict(False, "Two writes were lost.")
    row = suite.row(item, outcome(item, resource=broken), folder)
    assert (row["as_expected"], row["observed"]["resource"]) == (False, False)
    assert row["why"] == "resource is False, True was expected: Two writes were lost."


def test_without_proof_of_its_faults_nothing_follows_from_a_run(controls, folder):
    item = controls[0]
    unproved = Verdict("unknown", "No receipt.")
    row = suite.row(item, outcome(item, faults=unproved), folder)
    assert (row["as_expected"], row["why"]) == (False, "faults: No receipt.")
    cut = outcome(item, run=Verdict("unknown", "Step 2 came out as fail."))
    assert suite.row(item, cut, folder)["why"] == "run: Step 2 came out as fail."


def test_what_a_run_finds_of_which_nothing_was_expected_is_a_finding(controls, folder):
    item = controls[-1]
    assert not item.expected
    row = suite.row(item, outcome(item, resource=Verdict(False, "")), folder)
    assert (row["as_expected"], row["observed"]) == (True, {"faults": True, "resource": False})
    assert suite.tally([row]) == "0 of 0 came out as published."
    assert "(a finding): resource" in suite.summary("redis", 7, [row])


def test_a_suite_that_is_interrupted_leaves_what_it_found_and_a_report(controls, folder):
    def carry_out(item, spec):
        if item is controls[1]:
            raise KeyboardInterrupt
        return outcome(item)

    said = []
    with pytest.raises(KeyboardInterrupt):
        suite.run("redis", controls, carry_out, None, lambda row, _: said.append(row["scenario"]))
    run = (folder / "suite-redis" / "latest").resolve()
    assert [row["scenario"] for row in json.loads((run / "suite.json").read_text())] == said
    assert said == ["control"]
    assert (run / "report.html").exists()


def test_a_suite_with_an_unknown_server_is_refused(controls):
    with pytest.raises(BadArguments):
        suite.items("redis", 7, {"redis": "0.1"})
