"""Runs on real servers that the repository keeps get the same verdicts and reports again."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from fencepost.checker.checker import Run
from fencepost.checker.checkers import check, valid
from fencepost.checker.history.history import NEMESIS, read
from fencepost.harness.judge.judge import write_report

RUNS = sorted(path.parent for path in Path(__file__).parent.glob("recorded/*/expected.json"))


@pytest.fixture(params=RUNS, ids=lambda run: run.name)
def run(request, tmp_path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Copy a recorded run's folder with test.json, and return the expected verdicts."""
    kept: Path = request.param
    packed = (kept / "history.jsonl.gz").read_bytes()
    (tmp_path / "history.jsonl").write_bytes(gzip.decompress(packed))
    (tmp_path / "test.json").write_bytes((kept / "test.json").read_bytes())
    test = json.loads((kept / "test.json").read_text(encoding="utf-8"))
    return tmp_path, test, json.loads((kept / "expected.json").read_text(encoding="utf-8"))


def test_a_recorded_run_gets_its_verdicts_again(run):
    folder, test, expected = run
    verdicts = check(Run(read(folder / "history.jsonl"), test), test["checkers"])
    assert {name: verdict.valid for name, verdict in verdicts.items()} == expected


def test_a_recorded_run_has_a_report(run):
    folder, test, _ = run
    verdicts = check(Run(read(folder / "history.jsonl"), test), test["checkers"])
    results = {
        "test": test["name"],
        "valid": valid(verdicts),
        "checkers": {name: verdict.to_json() for name, verdict in verdicts.items()},
    }
    (folder / "results.json").write_text(json.dumps(results))
    html = write_report(folder).read_text(encoding="utf-8")
    assert {True: "Valid:", False: "Invalid:"}[results["valid"]] in html
    assert all(summary["summary"] for summary in results["checkers"].values())
    assert set(re.findall(r"--fault-(\w+):", html)) == families(folder)


def families(folder: Path) -> set[str]:
    return {op.f for op in read(folder / "history.jsonl") if op.process == NEMESIS}


def test_the_recorded_runs_show_every_kind_of_verdict():
    found = [json.loads((run / "expected.json").read_text(encoding="utf-8")) for run in RUNS]
    for checker in ("lease_exclusion", "linearizable", "ownership", "mutual_exclusion", "resource"):
        assert {True, False} <= {verdicts.get(checker) for verdicts in found}
    assert "unknown" in {verdict for verdicts in found for verdict in verdicts.values()}
