"""The code of docs/dataframes.md runs on a stored run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import snippets

PAGE = Path(__file__).parents[3] / "docs" / "dataframes.md"

pytestmark = pytest.mark.slow


def test_every_snippet_of_the_page_can_be_typed(store, clash, tmp_path):
    run = store(clash)
    place = tmp_path / "results" / "redlock"
    place.mkdir(parents=True)
    run.rename(place / run.name)
    (place / "latest").symlink_to(run.name)
    found = [one for one in snippets.of(PAGE) if one.language == "python"]
    printed = [snippets.carry_out(one, tmp_path) for one in found]
    counts, lasted, twice, during, fell, _ = printed
    assert counts.split()[1:] == ["6", "3", "10"]
    assert "client-1" in lasted
    assert "h4" in twice and "h5" in twice
    assert "clock of redis-3 jumped by 60 s: 1 holds, proved True" in during
    assert fell.split()[5:8] == ["2.511", "2", "h2"]
    assert (tmp_path / "ops.csv").read_text().startswith("index,time_s,process")
    assert len((tmp_path / "holds.jsonl").read_text().splitlines()) == 6
