"""Recorded and hand-made histories have their known verdicts, where they are installed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history import history
from fencepost.harness.judge.fault_facts import with_facts
from fencepost.harness.results import results
from fencepost.harness.servers.crash_lines import known

_CASES = Path(__file__).resolve().parents[3] / "shared" / "histories" / "verdict-cases"
_EXPECTED = _CASES / "expected.csv"


def _rows():
    if not _EXPECTED.is_file():
        reason = "the recorded histories are not beside the project"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    rows = list(csv.DictReader(_EXPECTED.read_text().splitlines()))
    return [pytest.param(row, id=f"{row['case']}-{row['checker']}") for row in rows]


@pytest.mark.parametrize("row", _rows())
def test_a_known_history_gets_its_known_verdict(row):
    folder = _CASES / row["case"]
    test = json.loads((folder / "test.json").read_text())
    ops = with_facts(history.read(folder / "history.jsonl"))
    run = Run(ops, test, results.server_logs(folder), known(test))
    found = CHECKERS[row["checker"]].check(run)
    assert str(found.valid).lower() in row["verdict"].split("|"), found.summary
