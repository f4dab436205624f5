"""The table of a played catalogue: found, missed, accused, and the score."""

from __future__ import annotations

import pytest

from fencepost.report import defect_scores
from fencepost.report.defect_scores import of_rows


def row(way="history", lock="Lock", *runs, reason="", checker="ownership"):
    found = {"defect": "toy", "family": "Releasing", "what": "It frees.", "checker": checker}
    return {**found, "way": way, "class": lock, "reason": reason, "runs": list(runs)}


def line(found=True, tried=1, seconds=None, accused=(), lacks=(), cannot="", **more):
    return {
        "found": found, "tried": tried, "seconds": seconds, "accused": list(accused),
        "lacks": list(lacks), "cannot": cannot, **more,
    }  # fmt: skip


def cell(*rows):
    (found,) = of_rows(rows)
    ((_, one),) = found.cells.items()
    return one


def test_a_defect_found_with_every_seed_shows_the_median():
    found = cell(row("history", "Lock", line(tried=1), line(tried=12), line(tried=30)))
    assert (found.state, found.words) == ("found", "ownership 3/3, median 12 histories")
    found = cell(row("hunt", "Lock", line(tried=1000, seconds=2.0), line(tried=3000, seconds=3.0)))
    assert found.words == "ownership 2/2, median 2,000 schedules, 2.5 s"
    assert cell(row("servers", "Lock", line(seconds=12.0))).words == "ownership, after 12.0 s"
    other = cell(row("servers", "Lock", line(seconds=12.0, by="linearizable")))
    assert (other.words, other.by) == ("linearizable, after 12.0 s", "linearizable")
    both = cell(row("servers", "Lock", line(), line(by="linearizable")))
    assert (both.words, both.by) == ("ownership 2/2", "")


def test_a_missed_defect_stays_missed_and_one_found_with_some_seeds_is_partly_found():
    assert cell(row("history", "Lock", line(False), line(False))).words == "missed"
    some = cell(row("history", "Lock", line(), line(False)))
    assert (some.state, some.words) == ("partly", "ownership 1/2, median 1 history")


@pytest.mark.parametrize(
    ("rows", "words", "wrong"),
    [
        ([row("hunt", reason="no model")], "cannot be expressed: no model", False),
        ([row("hunt", reason="no op", checker="")], "cannot be seen: no op", False),
        ([row("hunt", "Lock", line(cannot="no TIME"))], "cannot be expressed: no TIME", False),
        ([row("hunt", "Lock", {"crashed": "it raised"})], "not played: it raised", False),
        ([row("hunt")], "not played", False),
        ([row("history", "Lock", line(False, lacks=["cpu"]))], "missed (lacks cpu)", False),
        ([row("history", "Lock", line(accused=["store"]))],
         "ownership, median 1 history; untrue: store", True),
        ([row("history", "Lock", line()), row("history", "Sound", line(accused=["fencing"]))],
         "ownership, median 1 history; twin accused: fencing", True),
    ],
)  # fmt: skip
def test_a_cell_says_why(rows, words, wrong):
    found = cell(*rows)
    assert (found.words, found.wrong) == (words, wrong)


def test_the_score_counts_what_can_be_expressed_and_accused_twins():
    other = {**row("history", "Lock", line(False)), "defect": "other"}
    third = {**row("history", reason="no model"), "defect": "third"}
    twin = row("history", "Sound", line(False, accused=["liveness"]))
    rows = of_rows([row("history", "Lock", line()), twin, other, third])
    assert defect_scores.scores(rows)["history"].words == (
        "1 of 2 defects found (50 %), 1 cannot be expressed, 1 of 1 twin accused"
    )


def test_the_score_says_how_many_another_checker_found():
    rows = of_rows([row("servers", "Lock", line(by="linearizable"))])
    assert defect_scores.scores(rows)["servers"].words == (
        "1 of 1 defect found (100 %), 1 of them by another checker"
    )
