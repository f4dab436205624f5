"""The register on the site: each row has a page, and a badge counts the rows of its version."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from fencepost.harness.publish import register
from fencepost.workloads.scenarios.register import standalone
from fencepost.workloads.scenarios.register.rows import NOT_SHOWN, ROWS

ROW = ROWS[0]


@pytest.fixture
def written(tmp_path):
    def write(*rows):
        register.write(tmp_path / "register", rows, NOT_SHOWN)
        return tmp_path / "register"

    return write


def test_each_row_has_a_page_with_its_script_and_each_candidate_a_line(written):
    folder = written(*ROWS)
    index = (folder / "index.html").read_text(encoding="utf-8")
    for row in ROWS:
        assert f'href="{row.name}.html"' in index
        shown = (folder / f"{row.name}.html").read_text(encoding="utf-8")
        assert row.script.name in shown and "if __name__" in shown
        assert "from frame" not in shown
        lent = folder / "scripts" / row.script.name
        assert f'href="scripts/{lent.name}"' in shown
        assert lent.read_text(encoding="utf-8") == standalone.text(row.script)
    known = json.loads((folder / "register.json").read_bytes())
    assert [one["script"] for one in known["rows"]] == [row.script.name for row in ROWS]
    assert len(known["not_shown"]) == len(NOT_SHOWN) and 'href="register.json"' in index
    assert index.count("<td>not tried yet</td>") == sum(
        one.tried == "not tried yet" for one in NOT_SHOWN
    )


def test_a_badge_counts_the_open_defects_of_a_version(written):
    mended = replace(ROWS[1], versions=("5.0.8",), mended="6.4.0")
    folder = written(replace(ROW, versions=("5.0.8", "6.4.0")), mended)
    said = {
        one.stem: [text.text for text in ElementTree.parse(one).iter() if text.text][-1]
        for one in (folder / "badges").iterdir()
    }
    assert said == {"redis-5.0.8": "2 open defects", "redis-6.4.0": "1 open defect"}


def test_a_heading_names_the_part_of_a_software_once(written):
    one = replace(ROWS[0], software="lib, Lock", title="Lock: it is stuck")
    two = replace(ROWS[1], software="lib, asyncio Lock", title="it is stuck")
    folder = written(one, two)
    said = (folder / f"{one.name}.html").read_text(encoding="utf-8")
    assert "<h1>lib: Lock: it is stuck</h1>" in said
    said = (folder / f"{two.name}.html").read_text(encoding="utf-8")
    assert "<h1>lib, asyncio Lock: it is stuck</h1>" in said


def test_what_stands_between_backticks_is_code(written):
    folder = written(replace(ROW, title="`a<b>` is", happens="one ` alone"))
    for name in ("index", ROW.name):
        assert "<code>a&lt;b&gt;</code> is" in (folder / f"{name}.html").read_text(encoding="utf-8")
    shown = (folder / f"{ROW.name}.html").read_text(encoding="utf-8")
    assert "one ` alone" in shown and shown.count("<svg ") == len(ROW.versions)


def test_text_of_a_row_is_no_markup(written):
    folder = written(replace(ROW, title="<b>x</b>", software="a<i>"))
    for page in folder.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<b>x</b>" not in text and "a<i>" not in text
