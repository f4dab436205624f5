"""JUnit's file agrees with the exit code: violations fail, and crashes are errors."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from fencepost.report.exports import junit
from fencepost.report.exports.batches import Collected, entry

CHECKED = ["lease_exclusion", "mutual_exclusion", "fencing", "resource"]


@pytest.fixture
def suite(store):
    """Return the test suite of a story's file, with its cases by group and name."""

    def made(story, *asked, **changed):
        folder = store(story, checkers=CHECKED)
        found = json.loads((folder / "results.json").read_text())
        found["checkers"] |= changed
        test = json.loads((folder / "test.json").read_text())
        top = ElementTree.fromstring(junit.judged(found, test, str(folder), asked))
        (suite,) = top
        return suite, {
            (case.get("classname").rpartition(".")[2], case.get("name")): case
            for case in suite.findall("testcase")
        }

    return made


def test_a_valid_run_has_a_case_a_checker_and_none_that_fails(suite, calm):
    found, cases = suite(calm)
    assert set(cases) == {
        ("service", "lease_exclusion"), ("service", "fencing"), ("clients", "mutual_exclusion"),
        ("data", "resource"), ("data", "fencing"), ("test", "faults"),
    }  # fmt: skip
    assert [found.get(key) for key in ("tests", "failures", "errors", "skipped")] == [
        "6", "0", "0", "0",
    ]  # fmt: skip
    properties = {one.get("name"): one.get("value") for one in found.iter("property")}
    assert properties["seed"] == "7" and properties["report"].endswith("/report.html")
    assert found.findtext("system-out").startswith("Valid: the lock service kept its promise")


def test_a_violation_is_a_failure_with_its_evidence(suite, clash):
    found, cases = suite(clash)
    failure = cases["service", "lease_exclusion"].find("failure")
    assert failure.get("type") == "violation"
    assert "while client-1 (process 0) had hold" in failure.text
    assert int(found.get("failures")) >= 2


def test_an_uncounted_checker_is_skipped_with_its_verdict(suite, clash):
    clash.ops = [op for op in clash.ops if op.time < 2_800_000_000]
    found, cases = suite(clash, "service")
    assert found.get("failures") == "0"
    words = cases["clients", "mutual_exclusion"].find("skipped").get("message")
    assert words.startswith("INVALID, and does not count (--fail-on): ")


def test_unknown_is_skipped_with_its_reason_and_harness_trouble_is_an_error(suite, calm):
    trouble = {"valid": "unknown", "summary": "The run ended early.", "evidence": []}
    quiet = {"valid": "unknown", "summary": "Nothing was tested.", "evidence": []}
    found, cases = suite(calm, run=trouble, lease_exclusion=quiet)
    assert cases["service", "lease_exclusion"].find("skipped").get("message") == (
        "unknown: Nothing was tested."
    )
    assert cases["test", "run"].find("error").get("message") == trouble["summary"]
    assert (found.get("errors"), found.get("skipped")) == ("1", "1")


def test_a_run_without_a_verdict_is_one_error(suite):
    (found,) = ElementTree.fromstring(junit.failed("redis", RuntimeError("no engine \x00 answers")))
    assert found.get("errors") == "1"
    assert found.find("testcase/error").get("message") == "RuntimeError: no engine \ufffd answers"


def row(scenario, why="", **changed):
    return {
        "test": scenario, "scenario": scenario, "guard": "none",
        "what": "A client sleeps.", "run": "../x/1",
        "expected": {"resource": True},
        "observed": {"resource": True}, "as_expected": not why, "why": why, **changed,
    }  # fmt: skip


def suite_of(name, rows):
    lines = {one["test"]: entry(one) for one in rows}
    return Collected("suite", "", None, [], lines, name=f"suite-{name}")


def test_a_suite_has_a_case_a_run_which_fails_on_another_outcome():
    rows = [row("control"), row("gc-pause", "resource is False, True was expected: lost.")]
    (suite,) = ElementTree.fromstring(junit.campaigns([suite_of("redlock", rows)], 7))
    good, bad = suite.findall("testcase")
    assert suite.get("name") == "fencepost.suite-redlock"
    assert (good.get("classname"), good.get("name")) == (
        "fencepost.suite-redlock.control", "guard none"
    )  # fmt: skip
    assert good.find("failure") is None and "resource: True" in good.findtext("system-out")
    assert bad.find("failure").get("type") == "not as published"
    assert "True was expected" in bad.find("failure").get("message")
    assert [suite.get(key) for key in ("tests", "failures", "errors")] == ["2", "1", "0"]


def test_a_crashed_run_of_a_suite_is_an_error_and_so_is_the_error_that_ended_the_suites():
    rows = [row("gc-pause", "run: Step 2 came out as fail. resource is False, ...")]
    reports = [suite_of("redlock", rows), suite_of("etcd", [])]
    found = junit.campaigns(reports, 7, KeyboardInterrupt())
    suites = list(ElementTree.fromstring(found))
    assert [suite.get("errors") for suite in suites] == ["1", "0", "1"]
    assert "KeyboardInterrupt" in suites[-1].find("testcase/error").get("message")
