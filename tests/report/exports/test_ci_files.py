"""Files of a run for a CI: Markdown whose text is escaped, and a badge."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from fencepost.report.exports.badge import svg
from fencepost.report.words.summary import markdown


def test_the_summary_has_every_checker_under_its_question_and_the_evidence(store, clash):
    folder = store(clash, checkers=["lease_exclusion", "mutual_exclusion", "resource"])
    said = markdown(json.loads((folder / "results.json").read_text()), str(folder))
    assert "Invalid: the lock service broke its promise" in said
    assert "| Did the lock service keep its promise? | lease_exclusion | **INVALID** |" in said
    assert "- lease_exclusion: client-" in said
    assert f"Seed 7, results in `{folder}`." in said


def test_text_from_elsewhere_breaks_no_table_and_is_no_markup():
    row = {"valid": "unknown", "summary": "a | b\n<img src=x>", "evidence": []}
    found = {"test": "x", "valid": "unknown", "checkers": {"faults": row}}
    said = markdown(found, "here")
    assert "| a \\| b &lt;img src=x> |" in said


@pytest.mark.parametrize(
    ("valid", "word"), [(True, "valid"), (False, "invalid"), ("unknown", "unknown")]
)
def test_a_badge_is_a_picture_with_the_verdict(valid, word):
    picture = ElementTree.fromstring(svg("a<b", valid))
    texts = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["a<b", word]
