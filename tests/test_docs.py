"""The tables in docs/ are what their generator gives, and pages are in one version."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

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
