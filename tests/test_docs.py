"""The tables in docs/ match their generator, and no page has merge conflicts left."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from fencepost.workloads.scenarios.registry import SUITES
from tests.report.matrices import cell, run, violated
from tests.report.matrices import stored as matrix_of
from tests.report.pages.test_sweep import RUNS, stored

ROOT = Path(__file__).parents[1]
GENERATOR = runpy.run_path(str(ROOT / "tools" / "docs.py"))


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_a_page_s_tables_are_those_that_are_made(path):
    page = path.read_text(encoding="utf-8")
    assert page == GENERATOR["written"](page), "run `make docs`"


def test_text_written_by_hand_into_a_table_is_replaced():
    page = "before\n<!-- table: faults -->\n| by hand |\n<!-- end -->\nafter\n"
    made = GENERATOR["written"](page)
    assert "by hand" not in made
    assert made.startswith("before\n<!-- table: faults -->\n| family | what it does |")
    assert made.endswith("|\n<!-- end -->\nafter\n")
    assert GENERATOR["written"](made) == made


def test_no_page_has_a_conflict_of_two_versions_left():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("sdk/**/*.md")]
    assert len(pages) > 15
    left = [
        page.name for page in pages if re.search(r"^(<{7}|={7}|>{7})( |$)", page.read_text(), re.M)
    ]
    assert left == []


def test_a_sweep_s_table_has_the_figures_that_were_kept_of_it(tmp_path, monkeypatch):
    keep = runpy.run_path(str(ROOT / "tools" / "keep.py"))
    folder = tmp_path / "20260102T030405.000000Z"
    folder.mkdir()
    (folder / "sweep.json").write_text(json.dumps(stored(RUNS)))
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "mine.json").write_text(json.dumps(keep["kept"](folder)))
    monkeypatch.setitem(GENERATOR["written"].__globals__, "DOCS", tmp_path)

    def made(name):
        page = GENERATOR["written"](f"<!-- table: {name} -->\n<!-- end -->\n")
        return page.splitlines()[1:-1]

    assert made("sweep:mine:data") == [
        "| pause \\ ttl | 1 s | 4 s |", "| --- | --- | --- |",
        "| 8 s | – | **200** (40 of 200) |",
        "| 2 s | **3** (3 of 1,000) | < 5 (0 of 600) |",
        "| 0.5 s | < 3 (0 of 1,000) | < 6 (0 of 500) |",
    ]  # fmt: skip
    assert made("frontier:mine:data")[2].startswith("| 1 s | 0.5 s (1,000 holds) | 2 s | 3 holds, ")
    assert made("run:mine")[2] == "| 2026-01-02 | 5 | 3,300 | 7 | 7.0 |"


def test_a_matrix_table_has_the_signs_that_were_kept_of_it(tmp_path, monkeypatch):
    keep = runpy.run_path(str(ROOT / "tools" / "keep.py"))
    folder = tmp_path / "20260102T030405.000000Z"
    folder.mkdir()
    cells = [cell(run(1000)), cell(violated("data", 3), fault="kill")]
    (folder / "matrix.json").write_text(json.dumps(matrix_of(*cells)))
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "mine.json").write_text(json.dumps(keep["kept"](folder)))
    monkeypatch.setitem(GENERATOR["written"].__globals__, "DOCS", tmp_path)
    page = GENERATOR["written"]("<!-- table: matrix:mine -->\n<!-- end -->\n").splitlines()
    assert page[1] == "| lock | guard | no fault | crash |"
    assert page[3] == "| `redis` | none | K | D |"


def kept_suite(tmp_path, *entries, suite="redis"):
    """Write the folder of a suite with these entries, each with its run's seed."""
    folder = tmp_path / f"suite-{suite}" / "20260102T030405.000000Z"
    folder.mkdir(parents=True)
    rows = []
    for n, (seed, entry) in enumerate(entries):
        (folder / str(n)).mkdir()
        (folder / str(n) / "test.json").write_text(json.dumps({"seed": seed}))
        rows.append({"run": str(n), "versions": {"redis": "Redis 7.0.15"}, **entry})
    (folder / "suite.json").write_text(json.dumps(rows))
    return str(folder)


def outcomes(tmp_path, monkeypatch, *folders):
    """Return the rows of the table, by (entry, guard), for suites that were kept."""
    keep = runpy.run_path(str(ROOT / "tools" / "keep.py"))
    monkeypatch.setitem(keep["main"].__globals__, "MEASURED", tmp_path / "measured")
    assert keep["main"]([*folders, "mine"]) == 0
    monkeypatch.setitem(GENERATOR["written"].__globals__, "DOCS", tmp_path)
    page = GENERATOR["written"]("<!-- table: outcomes:mine -->\n<!-- end -->\n")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()[3:-1]]
    return {(row[1], row[2]): row for row in cells}


def evicted(as_expected=True, **changed):
    entry = next(one for one in SUITES["redis"].entries if one.name == "evicted")
    why = "" if as_expected else "lease_exclusion is True, False was expected."
    row = {"scenario": entry.name, "guard": entry.guard, "claim": entry.claim, "why": why}
    return {**row, "expected": dict(entry.expected), "as_expected": as_expected, **changed}


def test_the_table_of_outcomes_counts_expected_outcomes_and_names_others(tmp_path, monkeypatch):
    found = outcomes(
        tmp_path, monkeypatch, kept_suite(tmp_path, (7, evicted()), (8, evicted(False)))
    )
    row = found["redis: `evicted`", "none"]
    assert row[0] == "P1"
    assert row[3] == (
        "`lease_exclusion` F, `linearizable` F, `mutual_exclusion` F, `resource` F; all else T"
    )
    assert row[4] == (
        "as expected, 1 of 2 runs (seeds 7, 8). "
        "Seed 8: lease_exclusion is True, False was expected."
    )
    assert row[5:] == ["Redis 7.0.15", "`fencepost suite redis --only evicted`"]
    assert found["redis: `always-yes`", "none"][4] == "no run kept yet"


def test_the_table_of_outcomes_shows_observations_where_nothing_is_expected(tmp_path, monkeypatch):
    clocks = {"scenario": "clocks", "guard": "none", "expected": {}, "as_expected": True}
    runs = [
        (7, {**clocks, "observed": {"lease_exclusion": True}}),
        (8, {**clocks, "observed": {"lease_exclusion": False, "resource": True}}),
    ]
    found = outcomes(tmp_path, monkeypatch, kept_suite(tmp_path, *runs, suite="etcd"))
    assert found["etcd: `clocks`", "none"][3:5] == [
        "nothing: explored",
        "Seed 7: all T. Seed 8: `lease_exclusion` F; all else T",
    ]


def test_runs_kept_with_another_expectation_are_not_counted_for_a_scenario(tmp_path, monkeypatch):
    other = evicted(expected={"lease_exclusion": True})
    found = outcomes(tmp_path, monkeypatch, kept_suite(tmp_path, (7, other)))
    assert found["redis: `evicted`", "none"][4] == "no run kept yet"


def control(expected, **changed):
    row = {"scenario": "control", "guard": "none", "claim": "control", "why": ""}
    return {**row, "expected": expected, "as_expected": True, **changed}


def test_a_new_checker_or_one_that_is_gone_takes_no_control_run_away(tmp_path, monkeypatch):
    fewer = {"lease_exclusion": True, "a-checker-that-was": True}
    found = outcomes(tmp_path, monkeypatch, kept_suite(tmp_path, (7, control(fewer))))
    assert found["redis: `control`", "none"][3:5] == [
        "all T", "as expected, 1 of 1 runs (seed 7)",
    ]  # fmt: skip
    assert found["redis: `control`", "fenced"][4] == "no run kept yet"


@pytest.mark.parametrize("expected", [{"lease_exclusion": False}, {"a-checker-that-was": True}])
def test_a_control_run_counts_where_a_checker_of_today_was_asked_and_expected_the_same(
    tmp_path, monkeypatch, expected
):
    found = outcomes(tmp_path, monkeypatch, kept_suite(tmp_path, (7, control(expected))))
    assert found["redis: `control`", "none"][4] == "no run kept yet"


def test_the_table_of_outcomes_has_the_figures_of_rates_and_costs(tmp_path, monkeypatch):
    share = {"updates": {"count": 18, "of": 100, "low": 0.11, "high": 0.27}}
    counted = {"of": "lost", "published": "", "runs": [{"seed": 7}, {"seed": 8}], "shares": share}
    rate = {"scenario": "etcd-3.4-paused", "guard": "none", "as_expected": True, "rate": counted}
    locks = [
        {"lock": "redis", "ms": 0.5, "trips": 2, "rate": 6000.4},
        {"lock": "redlock", "ms": 2.0, "trips": 10},
    ]
    cost = {"scenario": "costs", "guard": "none", "as_expected": True}
    folder = kept_suite(tmp_path, (7, rate), (7, {**cost, "cost": {"locks": locks}}), suite="rates")
    found = outcomes(tmp_path, monkeypatch, folder)
    said = found["rates: `etcd-3.4-paused`", "none"]
    assert said[3] == "About 18 % of the acknowledged updates (etcd 3.4.3)."
    assert said[4] == "Seeds 7 to 8: Lost were 18 of 100 acknowledged updates: 18 % (11 % to 27 %)."
    assert found["rates: `costs`", ""][4] == (
        "2026-01-02: `redis` 0.5 ms in 2 round trips, 6,000 a second; "
        "`redlock` 2 ms in 10 round trips, 4 times."
    )


def test_a_folder_that_is_no_suite_is_not_kept_with_others(tmp_path, capsys):
    keep = runpy.run_path(str(ROOT / "tools" / "keep.py"))
    folder = kept_suite(tmp_path, (7, evicted()))
    assert keep["main"]([folder, str(tmp_path), "mine"]) == 254
    assert "only suites can be stored together" in capsys.readouterr().err
    (Path(folder) / "0" / "test.json").unlink()
    assert keep["main"]([folder, "mine"]) == 254
    assert "cannot be read" in capsys.readouterr().err
