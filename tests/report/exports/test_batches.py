"""Each kind of campaign is summed up in words and, for a CI system, as test cases."""

from __future__ import annotations

import pytest

from fencepost.report.campaign_files import Stored, write
from fencepost.report.exports import batches
from fencepost.report.exports.batches import KINDS, Collected, Line, markdown
from tests.report.matrices import cell, run, violated


@pytest.fixture
def collected(tmp_path):
    def made(kind, plan, *rows):
        folder = tmp_path / f"{kind}-redis" / "20260102T030405.000000Z"
        folder.mkdir(parents=True)
        lines = [
            {**row, "runs": [{"row": row["key"], "number": n, **run} for n, run in
                             enumerate(row["runs"], 1)]}
            for row in rows
        ]  # fmt: skip
        write(folder, Stored(kind, plan, lines))
        assert batches.kind(folder) == kind
        return batches.read(folder)

    return made


def states(found):
    return {name: line.state for name, line in found.lines.items()}


PLAN = {"locks": ["redis"], "faults": ["none"], "guards": ["none"], "seed": 7, "time_s": 10.0,
        "ttl_ms": 2000}  # fmt: skip


def test_a_cell_fails_if_a_promise_is_broken_and_is_an_error_if_all_runs_crashed(collected):
    cells = {
        "kept": cell(run(1000)),
        "damaged": cell(violated("data", 5), fault="kill"),
        "crashed": cell({"crashed": "it is down"}, fault="disk"),
        "untested": cell(fault="power"),
        "inapplicable": cell(fault="clock", reason="no clock"),
    }
    found = collected("matrix", PLAN, *({**one, "key": key} for key, one in cells.items()))
    assert list(states(found).values()) == ["passed", "failure", "error", "skipped", "skipped"]
    assert (found.seed, found.holds, found.valid, found.name) == (7, 2000, None, "matrix")
    (failed,) = [line for line in found.lines.values() if line.state == "failure"]
    assert (failed.group, failed.test, failed.kind) == ("redis", "kill, guard none", "damaged")
    assert str(failed).startswith("data damaged; Data was damaged in 5 holds")


def entry(name, run, **changed):
    row = {"key": name, "test": name, "scenario": name, "lock": "redis", "guard": "none",
           "claim": "C1", "source": "", "what": "", "expected": {"resource": True}}  # fmt: skip
    return row | changed | {"runs": run}


def test_an_entry_of_a_suite_fails_if_its_outcome_is_not_as_expected(collected):
    good = {"observed": {"resource": True}, "as_expected": True, "why": ""}
    bad = {"observed": {"resource": False}, "as_expected": False, "why": "resource is False"}
    rate = {"counts": {"data": [3, 100]}}
    found = collected(
        "suite", {"suite": "redis", "seed": 7},
        entry("a", [good]),
        entry("b", [bad]),
        entry("c", [{"crashed": "it is down"}]),
        entry("d", [{**bad, "as_expected": True, "why": ""}], expected={}),
        entry("e", [rate, rate], expected={}, rate={"of": "violations", "published": ""}),
        entry("f", [rate, {"crashed": "gone"}], expected={}, rate={"of": "lost", "published": ""}),
        entry("g", []),
    )  # fmt: skip
    assert states(found) == {
        "a": "passed", "b": "failure", "c": "error", "d": "passed", "e": "passed", "f": "failure",
    }  # fmt: skip
    assert found.words == "1 of 3 as published, 1 measured, 1 not measured as it should be"
    assert found.lines["c"].kind == "crashed" and found.name == "suite-redis"
    assert "6 of 200 holds" in str(found.lines["e"])
    assert "1 of 2 runs could not be counted: run: gone" in str(found.lines["f"])
    told = markdown("redis", found)
    assert "- **d**, guard none: a finding; broken: resource" in told and "**a**" not in told


def test_a_defect_fails_if_it_is_no_longer_seen_and_a_crash_is_an_error(collected):
    rows = {
        "x/real servers": {"outcome": "seen", "said": "So it is.", "run": "../../a/1Z"},
        "y/real servers": {"outcome": "not seen", "said": "It is gone."},
        "z/real servers": {"crashed": "it is down"},
    }
    found = collected(
        "track-record", {}, *({"key": key, "runs": [run]} for key, run in rows.items())
    )
    assert list(states(found).values()) == ["passed", "failure", "error"]
    assert found.words == "3 defects: 1 seen, 1 not seen, 1 not played"
    assert found.runs == ["../../a/1Z"]
    assert (found.lines["y/real servers"].group, found.lines["y/real servers"].test) == (
        "y", "real servers"
    )  # fmt: skip


def test_a_seed_fails_if_it_found_a_counterexample(collected):
    broken = {"seed": 3, "schedules": 40, "broken": ["ownership"], "strikes": 1, "story": ["So."]}
    found = collected(
        "campaign", {"lock": "redis", "seeds": [3, 4, 5, 6], "asked": {}},
        {"key": "3", "runs": [broken]},
        {"key": "4", "runs": [{"seed": 4, "schedules": 10}]},
        {"key": "5", "runs": [{"seed": 5, "failure": "it raised"}]},
        {"key": "6", "runs": []},
    )  # fmt: skip
    assert list(states(found).values()) == ["failure", "passed", "error", "skipped"]
    assert found.words == "broken from 1 of 3 seeds, 1 left" and found.valid is False
    assert found.lines["seed 3"].text == "So."


def test_a_lock_that_could_not_be_measured_is_an_error(collected):
    alone = {"acquire_p50": 0.5, "rate": 900.0}
    found = collected(
        "bench", {"baseline": "redis", "command": "", "locks": ["etcd"]},
        {"key": "redis", "lock": "redis", "runs": [{"phases": {"alone": alone}, "trips": {}}]},
        {"key": "etcd", "lock": "etcd", "runs": [{"crashed": "it is down"}]},
        *({"key": f"no {name}", "lock": "a",
           "runs": [{"phases": {"alone": alone | {name: None}}, "trips": {}}]} for name in alone),
    )  # fmt: skip
    assert states(found) == {
        "redis": "passed", "etcd": "error", "no acquire_p50": "error", "no rate": "error",
    }  # fmt: skip
    assert "it is down" in str(found.lines["etcd"])
    assert found.any("error") and not found.any("failure")


def test_an_untrue_verdict_fails_a_missed_defect_does_not_and_is_noted(collected):
    def played(found, *accused):
        return {"found": found, "tried": 3, "seconds": None, "accused": list(accused),
                "lacks": [], "cannot": ""}  # fmt: skip

    def row(defect, lock, run):
        return {"key": f"{defect}/history/{lock}", "defect": defect, "family": "f", "what": "w",
                "checker": "ownership", "way": "history", "class": lock, "reason": "",
                "runs": [run]}  # fmt: skip

    found = collected(
        "defects", {"seed": 1, "seeds": 1}, row("a", "Lock", played(True)),
        row("b", "Lock", played(False)), row("c", "Lock", played(True)),
        row("c", "Sound", played(False, "liveness")), row("d", "Lock", {"crashed": "it is down"}),
    )  # fmt: skip
    assert states(found) == {
        "a, history": "passed", "b, history": "skipped", "c, history": "failure",
        "d, history": "error",
    }  # fmt: skip
    assert "- **b**, history: missed" in markdown("defects", found)
    assert found.words.startswith("history: 2 of 3 defects found (67 %), 1 of 1 twin accused")


def test_every_kind_that_the_results_folder_lists_has_a_summary():
    assert set(KINDS) == {
        "suite", "matrix", "sweep", "track-record", "campaign", "bench", "defects", "night",
    }  # fmt: skip


def test_a_row_without_a_group_is_named_by_its_key_in_a_summary():
    found = Collected("hunt", "So it is.", None, [], {"seed 1": Line("broken", state="failure")})
    assert markdown("hunt-redis", found) == "### hunt-redis: So it is.\n\n- **seed 1**: broken\n\n"


def test_a_name_does_not_act_as_markup_in_the_summary():
    name = "a|b\n# c `d` <img src=x> [e](http://f) *g* @h"
    rows = {name: Line(name, name, "failure"), "grouped": Line("x", state="error", group=name)}
    said = markdown(name, Collected("suite", name, False, [], rows))
    assert len(said.splitlines()) == 5 and "http://" not in said
    assert not set("`<[]@") & set(said) and "a\\|b" in said and "*g*" not in said
