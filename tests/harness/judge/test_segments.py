"""The segments of a stored run are folders of its own, by their numbers."""

from __future__ import annotations

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.judge import segments


@pytest.fixture
def run(tmp_path):
    """Return a long run with the folders of two segments."""
    run = tmp_path / "run"
    for name in ("0001", "0002"):
        (run / "segments" / name).mkdir(parents=True)
        (run / "segments" / name / "history.jsonl").touch()
    (run / "test.json").write_text("{}")
    return run


@pytest.mark.parametrize("link", ["segments", "segments/0002"])
def test_a_segment_that_is_a_symbolic_link_is_refused_before_anything_is_written(run, link):
    elsewhere = run.parent / "elsewhere"
    (run / link).rename(elsewhere)
    (run / link).symlink_to(elsewhere)
    before = sorted(run.parent.rglob("*"))
    with pytest.raises(BadArguments, match=f"{link} is a symbolic link"):
        segments.judge_run(run)
    assert sorted(run.parent.rglob("*")) == before


def test_a_folder_whose_name_is_no_number_is_no_segment(run, monkeypatch):
    for name in ("0001.bak", "12", "latest", "\N{ARABIC-INDIC DIGIT ONE}" * 4, "10000"):
        (run / "segments" / name).mkdir()
        (run / "segments" / name / "history.jsonl").touch()
    judged = []
    monkeypatch.setattr(segments, "rejudge", lambda places, add: judged.extend(places))
    segments.judge_run(run)
    assert [one.name for one in judged] == ["0001", "0002", "10000"]
