"""The catalogue of defects as a campaign: its rows and items, its plays, and the command."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fencepost.checker.verdict import Verdict
from fencepost.harness.campaigns import campaign, defect_plays, defects, engine
from fencepost.harness.campaigns.defect_plays import Played, accusing, hunted_faults, of_hunt
from fencepost.harness.campaigns.defects import Lanes, Plan
from fencepost.harness.campaigns.executors import Clusters, alone
from fencepost.harness.campaigns.item import Hushed, Item
from fencepost.harness.command import app, screen
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.results import results
from fencepost.harness.servers.kinds import KINDS
from fencepost.report import defect_scores
from fencepost.workloads.contract import catalogue as catalogues
from fencepost.workloads.contract.catalogue import catalogue

ROOT = Path(__file__).parents[3]
DELETES = "release-without-owner-check"
CALM = """
from fencepost.workloads.contract.defect import Defect

class Sound:
    held = {}
    def __init__(self, servers): ...
    def acquire(self, name, ttl): return True
    def release(self, name): ...

class Lock(Sound): ...

DEFECT = Defect(name="release-toy", family="release", what="It frees a lock of wood.",
                seen="by construction", breaks="It holds.", checker="ownership", faults=("cpu",))
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("COLUMNS", "250")
    return tmp_path


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A catalogue of two: a defect of the repository, and a file that was just added."""
    folder = tmp_path / "defects"
    folder.mkdir()
    (folder / "release_toy.py").write_text(CALM)
    ours = catalogue()[DELETES].file
    (folder / ours.name).write_text(ours.read_text())
    monkeypatch.setattr(catalogues, "FOLDER", folder)
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", "defects", *words])
        screen.console.cache_clear()
        code = app.run()
        return code, " ".join(" ".join(capsys.readouterr()).split())

    return call


def played(monkeypatch, **by_way):
    """Replace the plays: each way returns what its function makes of an item."""
    for way, play in by_way.items():
        monkeypatch.setitem(defect_plays.PLAYS, way, play)


def test_a_file_is_enough_to_be_in_the_list_the_play_and_the_docs(toy, run):
    code, said = run()
    assert code == 0 and "release-toy It frees a lock of wood. ownership cpu" in said
    assert {row["defect"] for row in Plan(1).rows()} == {DELETES, "release-toy"}
    written = runpy.run_path(str(ROOT / "tools" / "docs.py"))["written"]
    said = written("<!-- table: defect-catalogue -->\n<!-- end -->\n")
    assert "| [release-toy](../workloads/defects/release_toy.py) | It frees a lock of wood." in said
    assert "| release-toy | not played yet |" in written(
        "<!-- table: defect-results -->\n<!-- end -->\n"
    )


def test_simulations_are_the_first_round_and_real_runs_the_second(toy):
    plan = Plan(7, ("release-toy",), seeds=2)
    first, second = plan.items(1), plan.items(2)
    assert [(one.row, one.seed) for one in first] == [
        ("release-toy/history/Lock", 7),
        ("release-toy/history/Lock", 8),
        ("release-toy/history/Sound", 7),
        ("release-toy/history/Sound", 8),
        ("release-toy/hunt/Lock", 7),
        ("release-toy/hunt/Lock", 8),
        ("release-toy/hunt/Sound", 7),
    ]
    assert not any(one.specs for one in first) and plan.items(3) == []
    (lock, twin) = second
    assert (lock.spec.time_s, twin.spec.time_s, lock.kind) == (60.0, 30.0, "redis")
    assert (lock.spec.nemesis, lock.spec.aim, lock.spec.seed) == (("cpu",), True, 7)
    assert (lock.spec.lock, lock.spec.name) == ("Lock", "defect-release-toy")
    assert twin.spec.name == "defect-release-toy-sound"


def test_a_class_that_cannot_be_played_says_why(toy, monkeypatch):
    monkeypatch.setitem(vars(KINDS["postgres"]), "model", "")
    text = (toy / "release_toy.py").read_text()
    (toy / "release_toy.py").write_text(text.replace('faults=("cpu",)', 'servers="postgres:1"'))
    reasons = {row["way"]: row["reason"] for row in Plan(1, ("release-toy",)).rows()}
    assert "there is no model of postgres" in reasons["hunt"]
    assert "there is no model of postgres" in reasons["history"]
    assert reasons["servers"] == ""


def test_names_of_defects_and_of_families_are_known_and_others_refused(toy):
    assert list(defects.chosen(("release",))) == ["release-toy", DELETES]
    assert list(defects.chosen(("release-toy",))) == ["release-toy"]
    with pytest.raises(BadArguments, match=r"no defect 'release-to'; choose one of: .*Did"):
        defects.chosen(("release-to",))


def test_a_hunt_leaves_out_the_faults_that_break_any_lock_on_redis(toy):
    setting = of_hunt(catalogue()[DELETES], "Lock", 1).setting
    assert setting.goals == ("ownership",)
    families = {one.partition("/")[0].partition(":")[0] for one in setting.faults}
    assert not families & {"clock", "power", "failover", "memory"}
    assert "kill" not in setting.faults and "kill:client" in setting.faults
    # Only faults that the hunt can inject exactly are added.
    assert "clock/drift" in hunted_faults(setting, ("clock/drift",))
    assert hunted_faults(setting, ("clock:majority/drift", "clock", "cpu")) == setting.faults


def test_a_hunt_for_trust_in_the_servers_has_the_faults_that_break_any_such_lock():
    hunt = of_hunt(catalogue()["quorum-server-forgets"], "Lock", 1)
    assert "kill" in hunt.setting.faults
    assert hunt.inherent


@pytest.mark.parametrize("name", ["quorum-every-server-needed", "token-counted-on-each-server"])
def test_what_breaks_any_lock_on_such_servers_shows_no_other_defect(name):
    assert not of_hunt(catalogue()[name], "Lock", 1).inherent


@pytest.mark.slow
def test_a_defect_is_found_in_histories_and_its_twin_is_not_accused():
    for lock, found in (("Lock", True), ("Sound", False)):
        item = Item("row", defect_plays.histories, 1, 3, asked=(DELETES, lock))
        one = alone(item)
        assert (one.found, one.accused, one.lacks, one.cannot) == (found, (), (), "")
        assert one.tried == (1 if found else defect_plays.OF_TWIN)


def test_a_fault_that_the_simulated_world_lacks_is_named(toy, monkeypatch):
    monkeypatch.setattr(defect_plays, "HISTORIES", 1)
    item = Item("row", defect_plays.histories, 1, 3, asked=("release-toy", "Lock"))
    assert alone(item).lacks == ("cpu: the simulated world has no cpu",)


def test_late_writes_without_a_guard_accuse_no_service():
    late, fell = {"what": "late", "resource": "account"}, {"what": "the token fell"}
    for evidence, guard, accused in (
        ([late], "none", []),
        ([late], "fenced", ["fencing"]),
        ([late, fell], "none", ["fencing"]),
    ):
        assert accusing({"fencing": Verdict(False, "", evidence)}, guard) == accused


def test_a_counterexample_that_breaks_the_twin_is_none(monkeypatch):
    """The hunt continues with another seed for the rest of its time."""
    seeds = []

    def carry_out(hunt, processes):
        seeds.append(hunt.spec.seed)
        tried = SimpleNamespace(schedules=10, seconds=25.0)
        return tried, SimpleNamespace(schedule=None, broken={})

    monkeypatch.setattr(defect_plays.Hunt, "carry_out", carry_out)
    monkeypatch.setattr(defect_plays, "_breaks", lambda *given: True)
    item = Item("row", defect_plays.hunting, 1, 3, asked=(DELETES, "Lock"))
    assert alone(item) == Played(False, 30, 75.0)
    assert len(set(seeds)) == 3
    monkeypatch.setattr(defect_plays, "_breaks", lambda *given: False)
    assert alone(item) == Played(True, 10, 25.0)


def outcome(monkeypatch, tmp_path, **verdicts):
    said = {
        name: Verdict(valid, name, [{"what": name, "time_ns": 12 * 10**9}] if not valid else [])
        for name, valid in verdicts.items()
    }
    found = SimpleNamespace(folder=tmp_path, verdicts=said)
    monkeypatch.setattr(defect_plays, "test_item", lambda *given: found)
    item = Item("row", defect_plays.servers, 1, 3, asked=(DELETES, "Lock"))
    return item.does(item, "a cluster", Hushed())


def test_a_run_on_servers_finds_a_defect_by_a_checker_that_it_concerns(monkeypatch, tmp_path):
    found = outcome(monkeypatch, tmp_path, ownership=False, lease_exclusion=False)
    assert found == Played(True, 1, 12.0)
    other = outcome(monkeypatch, tmp_path, ownership=True, lease_exclusion=False)
    assert other == Played(True, 1, 12.0, by="lease_exclusion")
    missed = outcome(monkeypatch, tmp_path, ownership=True, liveness=False, resource=False)
    assert missed == Played(False, 1, None, ("liveness",))
    with pytest.raises(Crashed, match="run"):
        outcome(monkeypatch, tmp_path, ownership=True, run="unknown")


@pytest.mark.slow
def test_real_runs_go_to_the_cluster_and_leave_their_report(machine, monkeypatch, short):
    """On the cluster in memory, whose clients run no code of a user."""
    monkeypatch.setattr(defect_plays, "RUN_S", 1.0)
    monkeypatch.setattr(defect_plays, "TWIN_RUN_S", 1.0)
    made = campaign.create(Plan(7, (DELETES,), ("servers",)))
    lanes = Lanes(made, Clusters(Hushed()), None)
    assert engine.carry_out([made], lanes, lambda *line: None, rounds=2)
    (row,) = defect_scores.table(made.folder)
    cell = row.cells["servers"]
    assert (cell.state, cell.twin, cell.wrong) == ("missed", True, False)
    test = json.loads((made.folder / cell.run / "test.json").read_text())
    assert test["lock"]["own"]["python"] == "release_without_owner_check.py:Lock"
    assert (test["aim"], test["nemesis"]) == (True, ["pause:client/other-holds"])


def test_the_command_plays_prints_one_table_and_keeps_it(toy, run, monkeypatch, here):
    def history(item, cluster, watcher):
        if item.asked == ("release-toy", "Sound"):
            return Played(False, 3, accused=("liveness",))
        return Played(item.asked[1] == "Lock", 4)

    played(monkeypatch, history=history)
    kept = here / "defects.json"
    words = ("--play", "--by", "history", "--seeds", "1", "--seed", "5", "--parallel", "1")
    code, said = run(*words, "--keep", str(kept), "--json")
    assert code == 1 and '"exit_code":1' in said.replace(" ", "")
    code, said = run(*words, DELETES)
    assert code == 0
    assert f"{DELETES} ownership, median 4 histories" in said
    assert "history: 1 of 1 defect found (100 %), 0 of 1 twin accused" in said
    rows = {row["defect"]: row["cells"] for row in json.loads(kept.read_text())}
    assert rows["release-toy"]["history"]["accused"] == ["liveness"]
    page = (results.root() / "defects" / "latest" / "report.html").read_text()
    assert "Lock defects found: history 1 of 1." in page


def test_options_of_a_play_need_a_play_and_ways_are_known(toy, run):
    assert "--by is for a play: add --play" in run("--by", "hunt")[1]
    code, said = run("--play", "--by", "luck")
    assert code == 254 and "there is no way 'luck'; choose one of: history, hunt, servers" in said


def test_a_partial_play_keeps_the_other_cells(toy, monkeypatch, here):
    file = here / "defects.json"
    for way in ("history", "hunt"):
        played(monkeypatch, **{way: lambda *given: Played(True, 2, 0.5)})
        made = campaign.create(Plan(1, (DELETES,), (way,), 1))
        assert engine.carry_out([made], Lanes(made, Clusters(Hushed()), 1), lambda *line: None)
        defects.keep(file, made.folder)
    (row,) = json.loads(file.read_text())
    assert {way: cell["state"] for way, cell in row["cells"].items()} == {
        "history": "found", "hunt": "found",
    }  # fmt: skip


@pytest.mark.parametrize(
    "stored", [{}, [{"cells": {}}], [{"defect": [], "cells": {}}], [{"defect": "a", "cells": 5}]]
)
def test_a_file_that_cannot_be_added_to_is_refused_before_the_play(run, here, stored):
    (here / "kept.json").write_text(json.dumps(stored))
    code, said = run("--play", "--keep", str(here / "kept.json"))
    assert code == 254 and "it is not a list of defects" in said
