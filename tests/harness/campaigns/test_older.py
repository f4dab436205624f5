"""What earlier versions stored is resumed: converted, with one line that says so."""

from __future__ import annotations

import json

import pytest

from fencepost.harness.campaigns import campaign, hunts, matrix, suite, sweep, track_record
from fencepost.harness.errors import BadArguments
from fencepost.harness.results import results
from fencepost.report import campaign_files
from fencepost.report.campaign_files import kind, lines
from fencepost.report.exports import batches
from tests.harness.campaigns.places import Places, counted


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(matrix, "tally", counted)
    monkeypatch.setattr(sweep, "tally", counted)
    return tmp_path / "results"


def resumed(name, kind, plan_of):
    said = []
    made = campaign.resumed(name, kind, plan_of, said.append)
    return made, said


def cells_of(plan, many):
    """The cells of a plan as an earlier version stored them, `many` of them with a run."""
    first = [item.row for item in plan.items(1)[:many]]
    return [
        {**row, "sum": {}, "runs": [{"round": 1, "seed": 5, "run": "../../a/1Z", **counted(None)}]
         if row["key"] in first else []}
        for row in plan.rows()
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "plan", "again", "versions"),
    [
        ("matrix", matrix.plan(("redis", "etcd"), ("none", "kill"), ("none",), 7), matrix.from_json,
         {"redis": {"redis": "7.0"}}),
        ("sweep", sweep.plan("redlock", "ttl=1s..4s", "pause=1s..2s", 7, "2x2"), sweep.from_json,
         {"redis": "7.0"}),
    ],
)  # fmt: skip
def test_a_matrix_and_a_sweep_are_resumed_where_they_were_stopped(file, plan, again, versions):
    place = results.create(file)
    content = {
        "schema": 1,
        "plan": plan.to_json(),
        "versions": versions,
        "cells": cells_of(plan, 2),
    }
    results.write(place / f"{file}.json", content)
    before = batches.read(place)
    made, (warning,) = resumed("latest", file, again)
    assert f"{file}.json has an earlier format; converted to campaign.json" in warning
    assert (made.plan, made.folder) == (plan, place.resolve())
    assert [item.key for item in made.left(1)] == [item.key for item in plan.items(1)[2:]]
    found = batches.read(place)
    assert (found.lines, found.holds, found.runs) == (before.lines, before.holds, before.runs)
    assert campaign_files.read(place, file).versions == (
        versions if file == "matrix" else {"": versions}
    )
    assert Places().carry_out(made) and made.done == 1
    assert resumed("latest", file, again)[1] == []


def test_a_campaign_of_hunts_is_resumed_with_the_seeds_that_are_left():
    place = results.create("campaign-redis")
    asked = {"options": {}, "settings": {"seed": "3"}, "faults": "clock", "budget": "1s"}
    content = {"schema": 1, "lock": "redis", "seeds": [3, 4, 5], "asked": asked}
    results.write(place / "campaign.json", content)
    done = {"seed": 4, "schedules": 40, "seconds": 1.0, "broken": ["ownership"], "schedule": [1]}
    (place / "seeds.jsonl").write_text(f'{json.dumps(done)}\n{{"seed": 5, "sched')
    assert (
        kind(place) == "campaign" and batches.read(place).words == "broken from 1 of 1 seed, 2 left"
    )
    made, (warning,) = resumed(
        "latest", "campaign", lambda stored: hunts.from_json("redis", stored)
    )
    assert "converted" in warning and [item.seed for item in made.left(1)] == [3, 5]
    assert hunts.total(made).found == 1
    assert batches.read(place).words == "broken from 1 of 1 seed, 2 left"


@pytest.mark.parametrize("asked", [{"options": []}, {"optios": {}}, {"settings": 1}])
def test_a_campaign_whose_plan_describes_no_hunt_is_not_resumed(asked):
    whole = {"options": {}, "settings": {"seed": "3"}, "faults": "clock"} | asked
    content = {"schema": 1, "lock": "redis", "seeds": [3], "asked": whole}
    results.write(results.create("campaign-redis") / "campaign.json", content)
    with pytest.raises(BadArguments, match="cannot resume from"):
        resumed("latest", "campaign", lambda stored: hunts.from_json("redis", stored))


def test_a_schedule_that_breaks_nothing_any_more_is_no_counterexample():
    plan = hunts.plan("redis", {"options": {}, "settings": {"seed": "3"}, "faults": "clock"}, 1)
    made = campaign.create(plan, "campaign-redis")
    made.lines["3"] = [{"seed": 3, "schedules": 1, "seconds": 1.0, "schedule": []}]
    with pytest.raises(LookupError, match="breaks no promise"):
        hunts.render(made)


def old_suite(seed=True):
    place = results.create("suite-redis")
    plan = suite.Plan("redis", 9)
    key, one = next(iter(plan.entries.items()))
    run = results.create(key)
    if seed:
        results.write(run / "test.json", {"seed": 9})
    row = {**plan.rows()[0], "run": f"../../{key}/{run.name}", "versions": {}, "why": "",
           "observed": dict(one.expected), "as_expected": True}  # fmt: skip
    results.write(place / "suite.json", [{k: v for k, v in row.items() if k != "key"}])
    return place, plan


def test_a_suite_is_resumed_with_the_entries_that_it_lacks():
    place, plan = old_suite()
    made, (warning,) = resumed("latest", "suite", suite.from_json)
    assert "suite.json" in warning and made.plan == plan
    assert [item.row for item in made.left(1)] == [item.row for item in plan.items(1)][1:]
    assert batches.read(place).words == "1 of 1 as published"


def test_a_suite_of_which_nothing_says_the_seed_cannot_be_resumed():
    old_suite(seed=False)
    with pytest.raises(BadArguments, match="have the seed"):
        resumed("latest", "suite", suite.from_json)


def test_a_track_record_is_resumed_with_the_defects_that_it_lacks():
    place, run = results.create("track-record"), results.create("etcd-x")
    results.write(run / "test.json", {"seed": 9})
    rows = track_record.Plan(9).rows()
    first = {**rows[0], "run": f"../../etcd-x/{run.name}", "outcome": "seen", "said": "So it is."}
    results.write(place / "track-record.json", [first])
    made, _ = resumed("latest", "track-record", track_record.from_json)
    assert made.plan == track_record.Plan(9) and len(made.left(1)) == len(rows) - 1
    (line,) = lines(place / "campaign.jsonl")
    assert line["outcome"] == "seen"
