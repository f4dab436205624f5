"""The register on the site: each row has a page, and a badge counts the rows of its version."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from fencepost.harness.publish import register
from fencepost.report.figures import steps, steps_drawing
from fencepost.report.pages import page
from fencepost.workloads.scenarios.register import issue, standalone
from fencepost.workloads.scenarios.register import row as row_module
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
    assert "one ` alone" in shown
    (badges,) = re.findall(r"<h2>Badges</h2>(.*)", shown, re.DOTALL)
    assert badges.count("<svg ") == len(ROW.versions)


def test_text_of_a_row_is_no_markup(written):
    folder = written(replace(ROW, title="<b>x</b>", software="a<i>"))
    for file in folder.glob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert "<b>x</b>" not in text and "a<i>" not in text


WITHOUT_STEPS = 0
"""Rows that have no picture yet."""


def test_every_row_has_steps_but_those_counted():
    assert sum(not row.steps for row in ROWS) == WITHOUT_STEPS
    files = {file.name for file in row_module.STEPS.iterdir()}
    assert files <= {f"{row.name}.txt" for row in ROWS}


@pytest.mark.parametrize("row", [row for row in ROWS if row.steps], ids=lambda row: row.name)
def test_the_steps_of_a_row_are_read_and_show_the_defect(row):
    found = steps.read(row.steps, row.name)
    assert 5 <= len(found) <= 18 and len(steps.lanes(found)) <= 6
    assert [one.kind for one in found].count("!") == 1
    holders = {one.lane for one in found if one.kind == "holds"}
    if row.impact == "silent":
        assert len(holders) == 2
    # Where a lock is granted twice, the picture has two bars at the defect. A read that is wrong,
    # and a lock that is free too early, have no second holder.
    elsewhere = ("etcd-stale-read", "etcd-paused-leader-revokes")
    if row.impact == "two holders" and row.name not in elsewhere:
        drawn = steps_drawing.drawing(row.steps, row.name)
        (moment,) = drawn.moments
        at = {bar.x for bar in drawn.bars if not bar.family and bar.y <= moment.y
              and bar.y + bar.height >= moment.y}  # fmt: skip
        assert len(at) >= 2
    if row.impact == "stuck":
        assert len(holders) <= 1


@pytest.fixture
def steps_of(tmp_path, monkeypatch):
    """Return a function that gives ROW these steps and no others any."""
    folder = tmp_path / "steps"
    folder.mkdir()
    monkeypatch.setattr(row_module, "STEPS", folder)

    def give(*lines):
        (folder / f"{ROW.name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    return give


def test_a_page_has_the_picture_of_its_row_and_its_words(written, steps_of):
    steps_of(
        "A > redis: SET <b>job</b>", "redis >x A: OK", 'A: sees "nothing" & waits', "! <i>it</i>"
    )
    folder = written(*ROWS[:2])
    shown = (folder / f"{ROW.name}.html").read_text(encoding="utf-8")
    assert "<b>job" not in shown and "<i>it" not in shown and "<script" not in shown
    figure = re.search(r"<figure.*</figure>", shown, re.DOTALL)[0]
    (picture,) = re.findall(r"<svg [^>]*role=.*?(?=</div>)", figure, re.DOTALL)
    drawn = ElementTree.fromstring(picture)
    assert drawn.get("role") == "img"
    names = dict.fromkeys(drawn.get("aria-labelledby").split())
    for one in drawn.iter():
        if one.get("id") in names:
            names[one.get("id")] = one.text
    assert names["sequence-title"] == "<i>it</i>" and "client A, redis." in names["sequence-desc"]
    said = "".join(drawn.itertext())
    assert "SET <b>job</b>" in said and 'sees "nothing" & waits' in said
    assert "not to scale" in figure and "redis to client A: OK (lost)" in figure
    assert "in s," not in figure and 'href="sequence.css"' in shown
    assert (folder / "sequence.css").read_text(encoding="utf-8") == page.source("sequence.css")
    ends = set(re.findall(r"marker-end=.url\(#([^)]+)", picture))
    assert ends == {one.get("id") for one in drawn.iter() if (one.get("id") or "")[:4] == "head"}


def test_a_row_without_steps_has_no_picture(written, steps_of):
    folder = written(*ROWS[:2])
    for row in ROWS[:2]:
        shown = (folder / f"{row.name}.html").read_text(encoding="utf-8")
        assert "<figure" not in shown and "Step by step" not in issue.text(row, "x.py")


def test_steps_are_in_the_issue_and_in_the_json(written, steps_of):
    lines = ["A > redis: SET", "! it"]
    steps_of(*lines)
    assert "```text\nA > redis: SET\n! it\n```" in issue.text(ROW, "x.py")
    known = json.loads((written(ROW) / "register.json").read_bytes())
    assert known["rows"][0]["steps"] == lines


def test_a_step_that_cannot_be_read_names_its_row(written, steps_of):
    steps_of("A > redis: SET", "A says hello")
    with pytest.raises(ValueError, match=f"^{ROW.name}, step 2, 'A says hello'"):
        written(ROW)
