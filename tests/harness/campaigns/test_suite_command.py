"""`fencepost suite` writes its results, and reports its outcome to a CI."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from xml.etree import ElementTree

import pytest

from fencepost.checker.verdict import Verdict
from fencepost.harness.campaigns import executors, item
from fencepost.harness.campaigns import suite as suites
from fencepost.harness.command import app
from fencepost.harness.errors import Crashed
from fencepost.harness.execute.stage import NOT_CARRIED_OUT
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.results import results


def as_published(spec, *_):
    item = next(item for item in suites.entries("redis", spec.seed) if item.spec.name == spec.name)
    valid = {name: Verdict(one, "") for name, one in item.expected.items()}
    verdicts = {"faults": Verdict(True, "All."), **valid}
    return Outcome(results.create(spec.name), True, verdicts, {})


@pytest.fixture
def suite(monkeypatch, tmp_path, capsys):
    """Run the command with fake runs; `runs` has their results."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(executors, "cluster_for", lambda *asked: nullcontext("a cluster"))

    def call(run, *options):
        monkeypatch.setattr(item, "run", run)
        words = ["suite", "redis", "--only", "control", *options]
        monkeypatch.setattr(sys, "argv", ["fencepost", *words])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def test_a_suite_writes_its_results_to_the_given_path_with_a_case_a_run(suite, tmp_path):
    files = ["--results", str(tmp_path / "there"), "--junit", str(tmp_path / "ci" / "junit.xml")]
    code, said = suite(as_published, *files)
    assert code == 0 and "came out as published" in said
    assert list((tmp_path / "there" / "suite-redis").iterdir())
    assert not (tmp_path / "elsewhere").exists()
    (found,) = ElementTree.parse(tmp_path / "ci" / "junit.xml").getroot()
    assert int(found.get("tests")) >= 1 and found.get("failures") == "0"


def test_an_outcome_other_than_published_fails_the_case_there_too(suite, tmp_path):
    def otherwise(*given):
        outcome = as_published(*given)
        name = next(name for name in outcome.verdicts if name != "faults")
        outcome.verdicts[name] = Verdict(False, "It was broken.")
        return outcome

    code, _ = suite(otherwise, "--junit", str(tmp_path / "junit.xml"))
    (found,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert code == 1 and int(found.get("failures")) == int(found.get("tests")) > 0


def second(error):
    """Runs of which the second one raises this."""
    begun = []

    def fails(spec, *given):
        begun.append(spec)
        if len(begun) == 2:
            raise error
        return as_published(spec, *given)

    return fails


def test_a_suite_that_ends_early_leaves_its_results_and_the_reason(suite, tmp_path):
    asked = ("--only", "", "--junit", str(tmp_path / "junit.xml"))
    code, said = suite(second(KeyboardInterrupt()), *asked)
    done, ended = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert code == 130 and "resume with: fencepost suite --resume 2" in said
    assert (done.get("tests"), done.get("errors")) == ("1", "0")
    assert "KeyboardInterrupt" in ended.find("testcase/error").get("message")


def test_a_run_that_crashes_is_an_error_and_the_suite_goes_to_its_end(suite, tmp_path):
    asked = ("--only", "", "--junit", str(tmp_path / "junit.xml"))
    code, said = suite(second(Crashed("client-1 did not come up")), *asked)
    (done,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert code == 255 and "NOT AS PUBLISHED  run: client-1 did not come up" in said
    assert int(done.get("tests")) > 2 and done.get("errors") == "1"
    assert "client-1 did not come up" in done.find("testcase/error").get("message")


def test_a_file_that_cannot_be_written_is_refused_before_anything_starts(suite, tmp_path):
    def never(*given):
        raise AssertionError("it was started")

    code, said = suite(never, "--junit", str(tmp_path))
    assert code == 254 and f"--junit: {tmp_path} cannot be written" in said


def late(times):
    """Runs whose first `times` schedules are not carried out."""
    begun = Counter()

    def run(spec, *given):
        begun[spec.name] += 1
        outcome = as_published(spec, *given)
        if begun[spec.name] <= times:
            notes = [f"{NOT_CARRIED_OUT}: step 3: it completed as fail"]
            outcome.results["run_notes"] = notes
            outcome.verdicts["run"] = Verdict("unknown", notes[0])
        return outcome

    return run, begun


def test_a_scenario_that_is_not_carried_out_in_time_is_tried_again(suite):
    run, begun = late(2)
    code, said = suite(run)
    assert code == 0 and "came out as published" in said
    assert set(begun.values()) == {3}


def test_what_could_not_be_carried_out_is_counted_apart_from_what_is_not_as_published(
    suite, tmp_path
):
    run, begun = late(3)
    code, said = suite(run, "--junit", str(tmp_path / "junit.xml"))
    assert code == 2
    assert "not carried out" in said and "NOT AS PUBLISHED" not in said
    assert "could not be carried out in time" in said
    assert set(begun.values()) == {3}
    (found,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (found.get("failures"), found.get("errors")) == ("0", "0")
    assert int(found.get("skipped")) == int(found.get("tests")) > 0
