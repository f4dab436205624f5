"""The tables in docs/ are what their generator gives, and pages are in one version."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from report.matrices import cell, run, violated
from report.matrices import stored as matrix_of
from report.test_sweep import RUNS, stored

ROOT = Path(__file__).parents[1]
GENERATOR = runpy.run_path(str(ROOT / "tools" / "docs.py"))


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_a_page_s_tables_are_those_that_are_made(path):
    page = path.read_text(encoding="utf-8")
    assert page == GENERATOR["written"](page), "run `make docs`"


def test_what_was_written_by_hand_into_a_table_is_replaced():
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
