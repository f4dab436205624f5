"""Forked processes judge stored runs again, several at a time, and return them in order."""

from __future__ import annotations

import json
import os
import signal

import pytest

from fencepost.harness.judge import reanalyze
from fencepost.harness.judge.judge import judge
from fencepost.harness.judge.reanalyze import rejudge

OP = {"index": 0, "time": 1, "process": 0, "type": "invoke", "f": "acquire", "value": {"lock": "a"}}


@pytest.fixture
def places(tmp_path):
    """Write four runs, each with more ops than the one before."""
    found = []
    for number in range(4):
        place = tmp_path / f"{number}"
        place.mkdir()
        rows = [OP | {"index": at, "process": at} for at in range(number + 1)]
        lines = [json.dumps(row) + "\n" for row in rows]
        (place / "history.jsonl").write_text("".join(lines))
        found.append(place)
    return found


def judged(places):
    found = []
    rejudge(places, lambda place, result: found.append((place, result)))
    assert [place for place, _ in found] == places
    return [result for _, result in found]


def test_the_results_of_runs_come_in_order_and_are_those_of_judging_each_alone(places):
    found = judged(places)
    assert [result["stats"]["ops"] for result in found] == [1, 2, 3, 4]
    assert found == [judge(place).results | {"notes": [], "run_notes": []} for place in places]


def test_a_run_whose_process_is_killed_is_unknown_and_the_others_are_judged(places, monkeypatch):
    def one(place):
        if place == places[2]:
            os.kill(os.getpid(), signal.SIGKILL)
        judge(place)

    monkeypatch.setattr(reanalyze, "judge", one)
    found = judged(places)
    assert ["stats" in result for result in found] == [True, True, False, True]
    assert found[2]["valid"] == "unknown"
    assert found[2]["run_notes"] == ["It could not be judged: exit code -9"]


def test_a_run_that_cannot_be_judged_says_why(places, monkeypatch):
    def one(place):
        if place == places[2]:
            raise ZeroDivisionError("a defect")
        judge(place)

    (places[0] / "history.jsonl").write_text("no op\n")
    monkeypatch.setattr(reanalyze, "judge", one)
    found = judged(places)
    assert "history.jsonl:1: " in found[0]["run_notes"][0]
    assert found[2]["run_notes"][0].endswith("ZeroDivisionError: a defect")
    assert "stats" in found[1] and "stats" in found[3]


def test_after_an_error_the_started_judgements_have_ended(places):
    def fails(place, result):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        rejudge(places, fails)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
