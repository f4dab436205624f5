"""The page of a played catalogue."""

from __future__ import annotations

from fencepost.report.campaign_files import Stored, write
from fencepost.report.pages import defects


def played(way, *seeds):
    key = f"a/{way}/Lock"
    line = {
        "row": key,
        "found": True,
        "tried": 1,
        "seconds": 1.0,
        "accused": [],
        "lacks": [],
        "cannot": "",
    }
    return {
        "key": key, "defect": "a", "family": "release", "what": "It does nothing.",
        "checker": "ownership", "way": way, "class": "Lock",
        "runs": [{**line, "number": seed, "seed": seed} for seed in seeds],
    }  # fmt: skip


def test_it_says_how_many_seeds_each_way_had(tmp_path):
    rows = [played("history", 7, 8), played("servers", 7)]
    write(tmp_path, Stored("defects", {"seed": 7, "seeds": 2}, rows))
    page = defects.render(tmp_path).read_text()
    assert "Seeds, 7 first: 2 by history, 1 on servers." in page
