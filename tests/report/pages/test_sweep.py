"""The page of a sweep is one offline file: a map for each question, and its frontier."""

from __future__ import annotations

import csv
import json
import re

import pytest

from fencepost.report.pages.sweep import contents, frontier, render, with_sums
from fencepost.report.stored import ReportError
from tests.report.matrices import led, run, violated
from tests.report.pages.test_matrix import Page

TTLS, PAUSES = (1.0, 4.0), (0.5, 2.0, 8.0)


def side(axis, values, fault):
    return {
        "axis": axis, "values": list(values), "title": axis, "what": f"what {axis} is",
        "shown": [f"{value:g} s" for value in values], "fault": fault,
    }  # fmt: skip


def stored(runs):
    """Return a sweep.json whose cells have these runs, by (ttl, pause)."""
    cells = [
        {
            "x": x, "y": y, "x_shown": f"{x:g} s", "y_shown": f"{y:g} s", "nemesis": ["pause"],
            "reason": "it cannot <be>" if (x, y) == (1.0, 8.0) and (x, y) not in runs else "",
            "runs": runs.get((x, y), []),
        }
        for y in PAUSES
        for x in TTLS
    ]  # fmt: skip
    plan = {
        "lock": "redlock", "options": {}, "guard": "none", "server": {}, "seed": 7,
        "steps": "2x3", "x": side("ttl", TTLS, False), "y": side("pause", PAUSES, True),
        "faults": 4, "command": "fencepost sweep redlock",
    }  # fmt: skip
    return {"schema": 1, "plan": plan, "versions": {"redis": "7.0"}, "cells": with_sums(cells)}


RUNS = {
    (1.0, 0.5): [run(1000)],
    (4.0, 0.5): [run(500)],
    (1.0, 2.0): [violated("data", 3, holds=1000)],
    (4.0, 2.0): [run(600)],
    (4.0, 8.0): [violated("data", 40, holds=200)],
}


@pytest.fixture
def page(tmp_path):
    def made(runs):
        (tmp_path / "sweep.json").write_text(json.dumps(stored(runs)))
        return Page(render(tmp_path).read_text(encoding="utf-8"))

    return made


def test_the_page_counts_the_cells_with_each_violation(page):
    found = page(RUNS)
    assert "redlock: of 5 settings, data was damaged in 2." in found.text
    assert "Data was damaged, per 1,000 holds" in found.text
    assert "The service granted a lease twice: not seen in 3,300 holds (95 %: at most" in found.text
    assert "Two clients believed, per 1,000" not in found.text


def test_the_longest_pause_is_on_top_and_each_tile_has_its_figure(page):
    found = page(RUNS)
    assert found.tiles == ["untested", "heat-3", "heat-1", "none", "none", "none"]
    (one,) = contents("now", stored(RUNS))["maps"]
    figures = [[tile["figure"] for tile in row["tiles"]] for row in one["rows"]]
    assert figures == [["–", "200"], ["3", "< 5"], ["< 3", "< 6"]]
    assert [row["title"] for row in one["rows"]] == ["8 s", "2 s", "0.5 s"]
    assert one["rows"][0]["tiles"][1]["counts"] == "40 of 200"


def test_the_frontier_says_where_it_was_not_seen_and_where_first():
    found = stored(RUNS)
    short, long = frontier("data", found["plan"], found["cells"])
    assert (short["safe"], short["safe_holds"], short["first"]) == ("0.5 s", 1000, "2 s")
    assert short["rate"].startswith("3 holds, 3 per 1,000 (0.62 to 8.7)")
    assert (long["safe"], long["safe_holds"], long["first"]) == ("2 s", 1100, "8 s")
    assert short["above"] == long["above"] == []


def test_cells_without_violation_beyond_the_frontier_are_named():
    found = stored({**RUNS, (1.0, 8.0): [run(300)]})
    assert frontier("data", found["plan"], found["cells"])[0]["above"] == ["8 s"]


def test_a_run_that_was_not_proved_is_not_shown_as_not_seen(page):
    doubtful = run(1000, questions={"data": "unknown"}, valid="unknown")
    found = page({**RUNS, (1.0, 0.5): [doubtful], (4.0, 0.5): [{"seed": 1, "crashed": "it died"}]})
    assert found.tiles[4:] == ["unknown", "unknown"]


def test_where_nothing_was_seen_a_map_shows_the_bounds(page):
    found = page({(1.0, 0.5): [run(1000)]})
    assert "redlock: no violation was seen in 1 setting." in found.text
    assert found.tiles.count("none") == 1
    assert "Nothing was run yet." in page({}).text


BOTH = led(overlaps=2, overlap_longest_s=4.8)
ELECTIONS = {
    (1.0, 0.5): [run(30, leaders=led())],
    (4.0, 0.5): [violated("clients", 2, holds=30, leaders=BOTH)],
    (1.0, 2.0): [run(30, questions={"clients": "unknown"}, leaders=led(reigns=1))],
}


def test_a_sweep_of_an_elector_has_a_map_of_the_longest_overlap_and_the_table_of_leaders(page):
    found = page(ELECTIONS)
    assert "two leaders worked at once in 1" in found.text
    assert "Two leaders worked at once, longest overlap in s" in found.text
    assert "Two leaders at work, and take-overs" in found.text
    one = contents("now", stored(ELECTIONS))["maps"][-1]
    tiles = [[(tile["heat"], tile["figure"], tile["counts"]) for tile in row["tiles"]]
             for row in one["rows"]]  # fmt: skip
    assert tiles == [
        [("untested", "–", "cannot be"), ("untested", "–", "not run")],
        [("unknown", "?", "0 of 0"), ("untested", "–", "not run")],
        [("none", "0", "0 of 8"), ("heat-2", "4.8", "2 of 8")],
    ]
    assert "longest overlap" not in page(RUNS).text


def test_a_sweep_of_two_settings_names_its_fault_and_has_no_frontier(tmp_path):
    asked = stored(ELECTIONS)
    asked["plan"]["y"]["fault"], asked["plan"]["fault"] = False, "cut=5s"
    (tmp_path / "sweep.json").write_text(json.dumps(asked))
    found = Page(render(tmp_path).read_text(encoding="utf-8"))
    assert "In each run 4 faults (cut=5s) were injected" in found.text
    assert "not seen up to" not in found.text


def test_a_click_opens_the_runs_of_a_cell_and_nothing_is_loaded_from_elsewhere(page):
    found = page(RUNS)
    opened = [link[1:] for link in found.links if link.startswith("#cell-")]
    assert len(opened) == 5 and set(opened) <= set(found.ids)
    assert found.outside == []
    assert "it cannot <be>" not in found.text  # except in a title, escaped


def test_the_table_next_to_it_has_a_row_a_cell(page, tmp_path):
    page(RUNS)
    rows = list(csv.DictReader((tmp_path / "sweep.csv").open()))
    assert [(row["ttl"], row["pause"]) for row in rows][:2] == [("1.0", "0.5"), ("4.0", "0.5")]
    assert (rows[2]["data_count"], rows[2]["data_per_1000"]) == ("3", "3.0")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"cells": [{}]}'])
def test_a_file_that_is_no_sweep_is_refused_with_its_name(tmp_path, content):
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(ReportError, match=r"sweep.json cannot be read \("):
        render(tmp_path)


def test_the_colours_of_the_map_carry_dark_letters_legibly(page, tmp_path):
    page(RUNS)
    html = (tmp_path / "report.html").read_text()
    colours = re.findall(r"\.(?:none|heat-\d) \{ --tile: #(\w{6});", html)
    assert len(colours) == 5

    def light(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    # WCAG 2.2, 1.4.3: normal text needs a contrast of 4.5.
    assert all((light(one) + 0.05) / (light("111111") + 0.05) >= 4.5 for one in colours)
