"""A hunt called from Python, and by the fixture of the pytest plugin: no cluster starts."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

import fencepost
from fencepost.harness.cluster import provision
from fencepost.harness.command import app
from fencepost.harness.errors import BadArguments

pytestmark = pytest.mark.slow

BROKEN = {"faults": "pause", "budget": 20, "seed": 1, "processes": 1}


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Check that no engine gets a request."""

    def asked(say):
        raise AssertionError("an engine was asked for")

    monkeypatch.setattr(provision.docker_engine, "ensure", asked)
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path


@pytest.fixture
def hunt():
    with fencepost.Session() as session:
        yield session.hunt


def test_a_counterexample_fails_the_assertion_with_the_story(hunt):
    found = hunt("broken-no-owner-check", **BROKEN)
    assert found.found and not found.valid
    with pytest.raises(AssertionError) as error:
        found.assert_valid()
    said = str(error.value)
    assert said.startswith("broken-no-owner-check is broken by this schedule")
    assert found.story and all(step in said for step in found.story)
    assert f"seed 1, report: {found.result.report}" in said
    assert found.result.report.is_file() and found.result.verdict is False


def test_the_printed_command_finds_the_same_story(hunt, monkeypatch, capsys):
    found = hunt("broken-no-owner-check", ttl="500ms", options={"retries": 0}, **BROKEN)
    words = [*shlex.split(found.command), "--processes", "1"]
    monkeypatch.setattr(sys, "argv", words)
    assert app.run() == 1
    said = capsys.readouterr().out.splitlines()
    assert all(step in said for step in found.story)


def test_a_hunt_without_counterexample_does_not_claim_correctness(hunt):
    found = hunt("redis", faults=["partition"], budget=0.5, seed=1, processes=1)
    assert found.valid and found.result is None and found.story == ()
    found.assert_valid()
    assert "which does not show that it is correct" in repr(found) and found.schedules > 0


@pytest.mark.parametrize(
    ("lock", "settings", "said"),
    [
        ("redis", {"time": "5s"}, "there is no setting of a hunt 'time'; choose one of: guard"),
        ("node-redlock", {}, "on this machine"),
        ("mylock.py:MyLock", {}, "there is no file mylock.py"),
        ("redis", {"budget": "soon"}, "'soon' is not a duration"),
    ],
)
def test_invalid_arguments_are_refused_before_any_schedule_runs(hunt, lock, settings, said):
    with pytest.raises(BadArguments, match=said.replace("'", ".")):
        hunt(lock, **settings)


@pytest.fixture
def suite(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(content, *options):
        pytester.makepyfile(content)
        return pytester.runpytest_inprocess("-p", "fencepost.pytest_plugin", *options)

    return run


def test_a_test_that_hunts_fails_with_the_story_s_sentences(suite):
    found = suite(
        """
        def test_by_assertion(fencepost):
            hunted = fencepost.hunt("broken-no-owner-check", faults="pause", processes=1)
            hunted.assert_valid()

        def test_by_valid(fencepost):
            assert fencepost.hunt("broken-no-owner-check", faults="pause", processes=1).valid

        def test_that_finds_nothing(fencepost):
            fencepost.hunt("redis", faults="partition", budget="500ms", processes=1).assert_valid()
        """,
        "--fencepost-seed=1",
        "-rA",
        "-vv",
    )
    found.assert_outcomes(passed=1, failed=2)
    said = found.stdout.str()
    assert "AssertionError: broken-no-owner-check is broken by this schedule" in said
    assert "E   " in said and "1. client-" in said
    assert "where False = <broken-no-owner-check is broken by this schedule" in said


def test_the_command_line_s_seed_and_time_are_those_of_a_hunt_too(suite):
    found = suite(
        """
        def test_one(fencepost, record_property, request):
            found = fencepost.hunt("redis", faults="partition", budget="10m", seed=3, processes=1)
            assert found.seed == 11 and found.seconds < 300
            assert ("fencepost.verdict", "True") in request.node.user_properties
        """,
        "--fencepost-seed=11",
        "--fencepost-time=500ms",
    )
    found.assert_outcomes(passed=1)


def test_a_signal_in_the_lock_s_code_interrupts_the_hunt(hunt):
    """It is no failure of the lock, of which a search or a shrink would take no notice."""
    path = Path(__file__).parent / "locks.py"
    with pytest.raises(KeyboardInterrupt):
        hunt(f"{path}:Interrupted", servers="redis:1", **BROKEN)
