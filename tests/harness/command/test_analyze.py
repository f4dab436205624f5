"""Ended runs are explained in the terminal, listed, and found by their names."""

from __future__ import annotations

import json
import sys

import pytest

from fencepost.harness.command import app


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", *words])
        code = app.run()
        return code, "".join(capsys.readouterr())

    return call


def stored(folder, test, time, valid=True):
    run = folder / test / time
    run.mkdir(parents=True)
    (run / "test.json").write_text(json.dumps({"name": test, "checkers": []}))
    (run / "history.jsonl").write_text("")
    evidence = [{"what": f"evidence {n}"} for n in range(5)]
    rows = {
        "lease_exclusion": {"valid": valid, "summary": "Said.", "evidence": evidence},
        "faults": {"valid": True, "summary": "No faults were requested.", "evidence": []},
    }
    found = {"test": test, "valid": valid, "seed": 7, "checkers": rows, "faults": []}
    (run / "results.json").write_text(json.dumps(found))
    return run


def test_a_run_is_explained_without_a_browser_with_all_its_evidence(run, tmp_path):
    folder = stored(tmp_path, "redis", "20260102T030405.000000Z", valid=False)
    code, said = run("explain", "redis/20260102T030405.000000Z")
    assert code == 1
    assert "Did the lock service keep its promise? no" in said
    assert all(f"lease_exclusion: evidence {n}" in said for n in range(5))
    assert f"report: {folder}/report.html" in said
    assert run("explain", str(folder), "--fail-on", "clients")[0] == 2


def test_the_newest_runs_are_named_by_time_and_not_by_name(run, tmp_path):
    stored(tmp_path, "zookeeper", "20260101T000000.000000Z")
    stored(tmp_path, "alpha", "20260301T000000.000000Z")
    stored(tmp_path, "redis", "20260201T000000.000000Z")
    order = ["alpha/20260301", "redis/20260201", "zookeeper/20260101"]
    code, said = run("report")
    assert code == 0
    assert [said.index(name) for name in order] == sorted(said.index(name) for name in order)
    code, said = run("analyze", "nowhere")
    assert code == 254
    assert [said.index(name) for name in order] == sorted(said.index(name) for name in order)


def test_report_alone_says_how_to_make_a_run_where_there_is_none(run):
    assert run("report") == (0, "No runs yet: start one with `fencepost test redis --time 10`.\n")


def test_suite_alone_lists_the_suites(run):
    code, said = run("suite")
    assert code == 0
    assert "runs: fencepost suite redlock" in said


def test_another_folder_of_results_can_be_named(run, tmp_path):
    stored(tmp_path / "other", "redis", "20260102T030405.000000Z")
    code, said = run("report", "--results", str(tmp_path / "other"))
    assert (code, "redis/20260102T030405" in said) == (0, True)
