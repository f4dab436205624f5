"""The folders of many runs: listed, shown, compared and removed."""

from __future__ import annotations

import json

import pytest

from fencepost.harness.locked import locked
from fencepost.harness.results import results, run_index
from tests.harness.results.stored_runs import (
    campaign,
    made,
    matrix,
    name_of,
    suite,
    sweep,
    track_record,
)
from tests.report.matrices import cell, violated
from tests.report.matrices import run as ran


def test_folders_of_many_runs_are_listed_with_their_results(call):
    suite(True, False)
    campaign(["lease_exclusion"], [])
    matrix(cell(ran(1000)), cell(violated("data", 5, holds=100), fault="kill"))
    made("hunt-redlock", False, ["resource"], hunt={"command": "again"})
    found = {one["kind"]: one for one in map(json.loads, call("ls", "--json")[1].splitlines())}
    assert {kind: (one["valid"], one["what"]) for kind, one in found.items()} == {
        "hunt": (False, "INVALID resource"),
        "matrix": (None, "Of 2 cells, data was damaged in 1."),
        "campaign": (False, "broken from 1 of 2 seeds, 1 left"),
        "suite": (False, "1 of 2 as published"),
    }
    assert found["matrix"]["holds"] == 1100
    listed = call("ls", "--kind", "suite")[1]
    assert "suite-redis/" in listed and "campaign" not in listed
    assert "campaign-redlock" in call("ls", "--lock", "redlock", "--kind", "campaign")[1]
    assert call("ls", "--kind", "trial")[0] == 254


def test_a_campaign_that_found_nothing_and_a_suite_with_nothing_published_are_not_valid(call):
    campaign([], [], [])
    suite()
    assert [json.loads(line)["valid"] for line in call("ls", "--json")[1].splitlines()] == [
        None
    ] * 2


@pytest.mark.parametrize(
    ("made_of", "said"),
    [
        (lambda: suite(True, False), "redis-1 NOT as published; broken: resource"),
        (lambda: campaign(["resource"]), "seed 5 broken: resource 1 injection, 40 schedules"),
        (lambda: matrix(cell(ran(1000))), "redis, no fault, guard none kept"),
    ],
)
def test_a_batch_is_shown_line_by_line_and_removed_without_its_runs(call, made_of, said):
    run = made("redis", True)
    folder = made_of()
    code, shown = call("show", name_of(folder))
    assert (code, said in " ".join(shown.split())) == (0, True)
    assert json.loads(call("show", folder.parent.name, "--json")[1])["lines"]
    assert call("rm", name_of(folder))[0] == 0
    assert not folder.exists()
    assert run.exists()


def test_two_batches_of_a_kind_are_compared_line_by_line(call):
    one, same, other = suite(True, True), suite(True, True), suite(True, False)
    assert call("compare", name_of(one), name_of(same))[0] == 0
    code, said = call("compare", name_of(one), name_of(other), "--json")
    found = json.loads(said)
    assert (code, found["alike"]) == (1, False)
    assert ["redis-1", "as published", "NOT as published; broken: resource"] in found["rows"]
    assert call("compare", name_of(one), name_of(campaign([])))[0] == 254


def test_sweeps_and_track_records_are_listed_and_compared(call):
    made = [sweep(1000), sweep(800), track_record("seen", "seen"), track_record("seen", "not seen")]
    found = [json.loads(line) for line in call("ls", "--json")[1].splitlines()]
    assert [(one["kind"], one["what"], one["holds"]) for one in reversed(found)] == [
        ("sweep", "redlock: no violation was seen in 1 setting.", 1000),
        ("sweep", "redlock: no violation was seen in 1 setting.", 800),
        ("track-record", "2 defects: 2 seen", None),
        ("track-record", "2 defects: 1 seen, 1 not seen", None),
    ]
    one, same, record, other = map(name_of, made)
    assert call("compare", one, same)[0] == 0
    assert call("compare", record, other)[0] == 1
    assert "So it is." in call("show", record)[1]


def test_measurements_of_a_suite_are_neither_as_published_nor_findings(call):
    folder = suite(True)
    rows = json.loads((folder / "suite.json").read_text())
    rate = {"runs": [{"run": "../../a/1Z", "counts": {}}, {"run": "../../a/2Z", "counts": {}}]}
    rows.append({"test": "a", "run": "../../a/1Z", "rate": rate, "as_expected": True})
    rows.append({"test": "b", "cost": {"locks": []}, "as_expected": False, "why": "no slower"})
    results.write(folder / "suite.json", rows)
    found = run_index.find(str(folder)).came
    assert {name: str(line) for name, line in found.lines.items()} == {
        "redis-0": "as published",
        "a": "measured",
        "b": "NOT as it should be; no slower",
    }
    assert found.words == "1 of 1 as published, 1 measured, 1 not measured as it should be"
    assert (found.valid, found.runs) == (False, ["../../a/1Z", "../../a/2Z"])
    results.write(folder / "suite.json", rows[1:2])
    found = run_index.find(str(folder)).came
    assert (found.words, found.valid) == ("1 measured", None)


def test_two_matrices_differ_by_states_and_not_by_figures(call):
    one, same = matrix(cell(ran(1000))), matrix(cell(ran(800)))
    assert call("compare", name_of(one), name_of(same))[0] == 0
    worse = matrix(cell(violated("data", 5, holds=100)))
    assert call("compare", name_of(one), name_of(worse))[0] == 1


def test_a_batch_in_progress_is_running_and_cannot_be_removed(call):
    folder = suite(True)
    with locked(folder):
        assert "running" in call("ls")[1]
        assert call("rm", name_of(folder))[0] == 254
    assert folder.exists()
