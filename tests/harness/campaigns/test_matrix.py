"""The matrix: its cells, their order and seeds, inapplicable cells, and how it resumes."""

from __future__ import annotations

import threading

import pytest

from fencepost.harness.campaigns import campaign as campaigns
from fencepost.harness.campaigns import engine, item
from fencepost.harness.campaigns import matrix as matrices
from fencepost.harness.campaigns.matrix import cells, plan, seeded, usual_faults
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.spec.spec import schedule_of, seconds
from fencepost.report.campaign_files import lines
from fencepost.report.pages import matrix as page
from fencepost.workloads.locks.registry import LOCKS
from tests.harness.campaigns.places import Places, counted

FAULTS = ("none", "pause:client", "kill")


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(matrices, "tally", counted)
    return tmp_path / "results"


def resumed(name):
    said = []
    return campaigns.resumed(name, "matrix", matrices.from_json, said.append)


@pytest.fixture
def bench():
    return Places()


def small(**more):
    return plan(**{"locks": ("redis", "etcd"), "faults": FAULTS, "guards": ("none",), "seed": 7}
                | more)  # fmt: skip


def test_by_default_every_sound_lock_runs_under_every_usual_fault():
    asked = plan((), (), (), 7)
    assert set(LOCKS) - set(asked.locks) == {
        "none", *(name for name in LOCKS if name.startswith("broken-")),
    }  # fmt: skip
    assert (asked.faults, asked.guards) == (usual_faults(), ("none", "fenced"))
    assert plan((), (), (), 7, quick=True).guards == ("none",)


def test_every_cell_is_a_valid_test_or_gives_the_reason():
    found = cells(plan((), (), tuple(matrices.GUARDS), 7, quick=True))
    assert len({cell.name for cell in found}) == len(found)
    assert all((cell.spec is None) == bool(cell.reason) for cell in found)
    reasons = {cell.name: cell.reason for cell in found if cell.reason}
    assert reasons["redis-py/none/fenced"] == (
        "guard fenced needs a fencing token, and redis-py gives none with these options"
    )
    assert not [cell.name for cell in found if cell.guard == "none" and cell.fault == "none"
                and cell.reason]  # fmt: skip


def test_a_guard_that_needs_another_token_gets_it():
    found = cells(plan(("redis",), ("none",), ("none", "fenced", "paired"), 7))
    tokens = [cell.spec.options["token"] for cell in found]
    assert tokens[2] == "paired" and tokens[0] == LOCKS["redis"].read_options({})["token"]


def test_all_is_every_other_fault_that_the_servers_can_have():
    asked = plan(("redlock", "redis-replicated"), ("none", "kill", "failover", "all"), (), 7)
    found = {cell.name: cell for cell in cells(asked)}
    assert found["redlock/all/none"].spec.nemesis == ("kill",)
    assert found["redis-replicated/all/none"].spec.nemesis == ("kill", "failover")
    assert "failover" not in asked.to_json() and found["redlock/failover/none"].reason


def test_with_an_aim_each_cell_with_a_fault_waits_for_its_moment():
    with pytest.raises(BadArguments, match=r"fault kill:rolling: .*a rolling fault has no moment"):
        small(locks=("redlock",), faults=("none", "kill:rolling"), aim=True)
    found = {cell.fault: cell for cell in cells(small(locks=("redis",), aim=True))}
    assert not found["none"].spec.aim and found["kill"].spec.aim
    one, other = (seeded(found["kill"], 7, number) for number in (1, 2))
    assert one.aim and one.nemesis == ("kill",) and one.seed != other.seed
    assert one == seeded(found["kill"], 7, 1)


def test_of_all_faults_an_aim_leaves_none_out():
    asked = plan(("redlock",), ("kill", "pause", "all"), ("none",), 7, time_s=1.0, aim=True)
    found = {cell.fault: cell for cell in cells(asked)}
    assert seeded(found["all"], 7, 1).nemesis == ("kill", "pause")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"locks": ("redlok",)}, "there is no lock 'redlok'; choose one of: "),
        ({"faults": ("flood",)}, "there is no fault 'flood'; choose one of: none, all, "),
        ({"faults": ("pause:nobody",)}, "fault pause:nobody: the test has no 'nobody'; choose"),
        ({"faults": ("pause/",)}, "'pause/' cannot be read: write FAMILY"),
        ({"locks": ("redlock",), "faults": ("failover",)}, "fault failover: a lock on one server"),
        ({"guards": ("high",)}, "there is no guard 'high'; choose one of: none, "),
        ({"time_s": 0.5}, "time 0.5 s is out of range"),
        ({"time_s": 3600.0}, "time 3600 s is out of range"),
    ],
)
def test_an_unknown_lock_fault_or_guard_is_refused_with_the_valid_ones(given, message):
    with pytest.raises(BadArguments, match=message.replace("(", r"\(")):
        small(**given)


def test_the_length_of_a_run_is_such_that_a_round_fits_the_budget():
    assert small().time_s == 20
    assert small(budget_s=60.0).time_s == 2.5  # a shorter run would contain no fault
    assert small(budget_s=86_400.0).time_s == 60
    middle = small(budget_s=200.0)
    taken = sum(item.around(cell.kind) + middle.time_s for cell in cells(middle))
    assert 2.5 < middle.time_s < 60 and taken <= 200
    assert middle.time_s < small(budget_s=200.0, lanes=2).time_s <= 60
    assert small(budget_s=200.0, time_s=9.0).time_s == 9


def test_the_quick_matrix_is_planned_for_a_quarter_of_an_hour():
    asked = plan((), (), (), 7, budget_s=seconds("budget", matrices.QUICK), quick=True)
    found = [cell for cell in cells(asked) if cell.spec]
    assert {cell.lock for cell in found} == set(matrices.usual_locks())
    assert {cell.fault for cell in found} == set(usual_faults())
    assert {cell.guard for cell in found} == {"none"}
    assert asked.time_s >= 2.5


def test_each_run_has_a_seed_of_its_own_that_follows_from_the_matrix():
    found = [cell for cell in cells(small()) if cell.spec]
    seeds = [seeded(cell, 7, number).seed for cell in found for number in (1, 2)]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [seeded(cell, 7, number).seed for cell in found for number in (1, 2)]
    assert seeds != [seeded(cell, 8, number).seed for cell in found for number in (1, 2)]


def test_a_run_s_seed_draws_a_fault_of_each_family_that_is_asked_for():
    asked = plan(("redlock",), usual_faults(), ("none",), 7, time_s=6.0)
    for cell in cells(asked):
        spec = seeded(cell, 7, 1)
        drawn = {fault.family for fault in schedule_of(spec)}
        assert drawn == set(spec.families)
        assert cell.fault == "all" or spec.nemesis == cell.spec.nemesis
    assert len(drawn) >= 4


def test_each_kind_of_server_has_one_cluster_and_its_cells_come_in_random_order(bench):
    found = campaigns.create(small(locks=("redis", "redlock", "etcd", "chubby")))
    whole, said = bench.carry_out(found), bench.said
    assert whole and len(said) == len(bench.ran) == 12
    assert sorted(bench.ups) == [["etcd"], ["redis"]] and bench.downs == 2
    clusters = [cluster for *_, cluster in bench.ran]
    assert clusters == sorted(clusters)
    again = Places()
    again.carry_out(campaigns.create(small(locks=("redis", "redlock", "etcd", "chubby"))))
    assert [run[:4] for run in again.ran] == [run[:4] for run in bench.ran]
    plain = [(cell.lock, cell.spec.nemesis) for cell in found.plan.cells]
    assert sorted(run[:2] for run in bench.ran) == sorted(plain)
    assert [run[:2] for run in bench.ran] != plain


def test_rounds_continue_while_the_budget_lasts(bench, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(engine.time, "monotonic", lambda: now[0])
    carried = bench.run

    def slowly(item, cluster):
        now[0] += 10.0
        return carried(item, cluster)

    bench.run = slowly
    found = campaigns.create(small(locks=("redis",), time_s=5.0))
    whole = bench.carry_out(found, most=None, budget_s=100.0)
    assert not whole
    assert now[0] <= 100
    assert found.done == 3 and len(bench.ran) == 9
    assert len({seed for _, _, _, seed, _ in bench.ran}) == len(bench.ran)


def test_cells_beyond_the_budget_are_not_tested_until_it_resumes(bench):
    found = campaigns.create(small())
    with pytest.raises(KeyboardInterrupt):
        bench.fails[3] = KeyboardInterrupt()
        bench.carry_out(found)
    assert bench.downs == len(bench.ups)
    first, bench.fails = [run[:4] for run in bench.ran[:2]], {}
    again = resumed(found.folder.name)
    assert [len(runs) for runs in again.lines.values()].count(1) == 2
    assert (again.plan, again.done) == (found.plan, 0)
    bench.ran.clear()
    bench.carry_out(again)
    straight = Places()
    straight.carry_out(campaigns.create(small()))
    assert first + [run[:4] for run in bench.ran] == [run[:4] for run in straight.ran]
    assert again.done == 1


def test_a_matrix_with_an_aim_keeps_its_aim_when_it_resumes():
    found = campaigns.create(small(aim=True))
    assert resumed(found.folder.name).plan == found.plan


def test_a_matrix_that_is_whole_is_resumed_without_a_run(bench):
    found = campaigns.create(small(locks=("redis",)))
    bench.carry_out(found)
    bench.ran.clear()
    again = resumed("latest")
    assert bench.carry_out(again) and bench.said == []
    assert again.stored() == found.stored()
    bench.carry_out(again, most=2)
    assert len(bench.ran) == 3 and again.done == 2


def test_a_run_that_crashes_is_recorded_and_the_next_has_a_new_cluster(bench):
    bench.fails[1] = Crashed("client-1 did not come up")
    bench.notes[2] = ["This could not be healed: a partition."]
    found = campaigns.create(small(locks=("redis",)))
    whole, said = bench.carry_out(found), bench.said
    assert whole and [cluster for *_, cluster in bench.ran] == [
        "cluster 1",
        "cluster 2",
        "cluster 3",
    ]
    assert said[0]["crashed"] == "client-1 did not come up"
    (first,) = found.lines[said[0]["row"]]
    assert "run" not in first and first["number"] == 1
    states = [row["sum"]["state"] for row in page.read(found.folder)["cells"]]
    assert sorted(states) == ["kept", "kept", "unknown"]


def at_once(bench, count):
    """Runs that require a number of them to be in progress at a time."""
    both = threading.Barrier(count, timeout=120)
    carried = bench.run

    def run(item, cluster):
        both.wait()  # which a single lane would never pass
        return carried(item, cluster)

    bench.run = run


def test_several_lanes_run_the_same_cells_each_on_a_cluster_of_a_kind_of_its_own(bench):
    at_once(bench, 2)
    bench.lanes = 2
    found = campaigns.create(small())
    whole, said = bench.carry_out(found), bench.said
    assert whole and len(said) == 6 and found.done == 1
    assert sorted(bench.ups) == [["etcd"], ["redis"]] and bench.downs == 2
    alone = Places()
    alone.carry_out(campaigns.create(small()))
    assert {run[:4] for run in bench.ran} == {run[:4] for run in alone.ran}


def test_a_lane_without_a_kind_of_its_own_joins_another_where_that_is_worth_a_cluster(bench):
    at_once(bench, 2)
    asked = small(locks=("redis", "redlock"), faults=("none", "kill"))
    bench.lanes = 2
    assert bench.carry_out(campaigns.create(asked))
    assert bench.ups == [["redis"], ["redis"]]
    few = Places(lanes=2)
    few.carry_out(campaigns.create(small(locks=("redis",), faults=("none",))))
    assert few.ups == [["redis"]] and len(few.ran) == 1


def test_a_lane_that_fails_ends_the_others_after_their_current_run(bench):
    bench.fails[1], bench.lanes = RuntimeError("a defect"), 2
    found = campaigns.create(small(locks=("redis", "redlock")))
    with pytest.raises(RuntimeError, match="a defect"):
        bench.carry_out(found)
    assert bench.downs == len(bench.ups)


def test_a_cluster_that_does_not_start_ends_the_matrix(bench):
    def nothing(items):
        raise Crashed("there is no engine")

    bench.place = nothing
    with pytest.raises(Crashed, match="no engine"):
        bench.carry_out(campaigns.create(small()))


def test_a_line_is_written_after_each_run_with_the_way_to_the_run(bench, folder):
    found = campaigns.create(small(locks=("redis",)))
    seen = []

    def say(*_):
        seen.append(lines(found.folder / "campaign.jsonl"))

    bench.carry_out(found, say=say)
    assert [len(one) for one in seen] == [1, 2, 3]
    stored = page.read(found.folder)
    assert stored["versions"] == {"redis": {"server": "1.0"}}
    for row in stored["cells"]:
        (run,) = row["runs"]
        assert (found.folder / run["run"] / "test.json").is_file()
    assert page.render(found.folder).read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "cannot resume: .*matrix.json cannot be read"),
        ("[]", "cannot resume: .*matrix.json cannot be read"),
        ('{"schema": 1, "cells": []}', "cannot be read .'plan'."),
        ('{"schema": 1, "plan": {}, "cells": []}', "missing required field `locks`"),
        ('{"schema": 9}', "its version is 9"),
    ],
)
def test_a_matrix_json_that_is_none_is_refused(folder, content, message):
    place = folder / "matrix" / "20260102T030405.000000Z"
    place.mkdir(parents=True)
    (place / "matrix.json").write_text(content)
    with pytest.raises(BadArguments, match=message):
        resumed(place.name)


def test_a_matrix_of_a_lock_that_is_gone_cannot_be_resumed(bench):
    found = campaigns.create(small(locks=("redis",)))
    path = found.folder / "campaign.json"
    path.write_text(path.read_text().replace('"redis"', '"gone"'))
    with pytest.raises(BadArguments, match="there is no lock 'gone'"):
        resumed(str(found.folder))


def test_a_folder_that_is_no_matrix_is_not_resumed():
    with pytest.raises(BadArguments, match="'nowhere' is not a matrix"):
        resumed("nowhere")


def test_a_matrix_keeps_its_lease_and_its_work_when_it_is_resumed():
    found = campaigns.create(small(quick=True))
    again = resumed(str(found.folder))
    assert again.plan == found.plan and again.plan.ttl_ms == 1000
    assert {cell.spec.hold for cell in again.plan.cells if cell.spec} == {"0..1.1ttl"}
    assert resumed("latest").folder == found.folder.resolve()
