"""Campaigns hunt from many seeds, keep each result, merge them, resume, and run on Dask."""

from __future__ import annotations

import json
import random
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from fencepost.harness.campaigns import campaign as campaigns
from fencepost.harness.campaigns import hunts
from fencepost.harness.campaigns.dask_executor import Workers
from fencepost.harness.campaigns.executors import Gone, Processes
from fencepost.harness.campaigns.item import Item
from fencepost.harness.command import app
from fencepost.harness.errors import BadArguments
from fencepost.hunt.search import campaign as search
from fencepost.hunt.search.campaign import Outcome, merged
from tests.dasked import dasked, needs_dask

pytestmark = pytest.mark.slow

SEEDS = range(1, 7)
COMMAND = ("hunt", "redis", "--faults", "clock,packet", "--budget", "60s", "--seed", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line; return its exit code and its output."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fencepost", *arguments])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def items(setting, seeds=SEEDS):
    one = setting("redis", "clock,packet")
    return [
        Item(str(seed), hunts.work, seed=seed, asked=search.Item(one, seed, 60.0), leaves=False)
        for seed in seeds
    ]


def alone(setting, seeds=SEEDS):
    return without_times(search.work(item.asked) for item in items(setting, seeds))


def resumed(lock, name):
    return campaigns.resumed(
        name, "campaign", lambda stored: hunts.from_json(lock, stored), lambda words: None
    )


def without_times(outcomes):
    """Return the result of a seed, wherever it is hunted."""
    return {one.seed: replace(one, seconds=0.0) for one in outcomes}


def only(folder):
    (made,) = (one for one in folder.glob("campaign-redis/2*"))
    return made


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# Merging.


def test_counterexamples_are_grouped_by_their_minimal_schedule_in_any_order():
    common = {"broken": ["ownership"], "strikes": 1, "story": ["1"]}
    rows = [
        Outcome(1, 10, 1.0, [0, 5], **common, states=[1, 2], covered=[["a", "b"]]),
        Outcome(2, 20, 1.0, None, states=[2, 3], covered=[["a", "b"]], struck={"packet": 4}),
        Outcome(3, 30, 2.0, [0, 7], **common, states=[3], covered=[["a", "c"]]),
        Outcome(4, 40, 1.0, [0, 5], **common, struck={"packet": 1}),
        Outcome(5, 0, 0.0, failure="it raised"),
    ]
    random.Random(1).shuffle(rows)
    total = merged(rows)
    assert [(group.schedule, group.seeds) for group in total.groups] == [
        ((0, 5), (1, 4)),
        ((0, 7), (3,)),
    ]
    assert (total.seeds, total.found, total.schedules, total.rate) == (5, 3, 100, 20.0)
    assert (total.states, total.covered, total.new, total.struck) == (3, 2, 2, {"packet": 5})
    assert total.failures == ((5, "it raised"),)


def test_two_processes_give_the_same_result_as_one(setting):
    with (
        closing(Processes(2, len(SEEDS))) as both,
        both.place([]) as execute,
        ThreadPoolExecutor(2) as lanes,
    ):
        found = without_times(lanes.map(execute, items(setting)))
    assert found == alone(setting)
    assert all(one.schedule for one in found.values())


def test_processes_that_are_ended_leave_nobody_waiting():
    made = Processes(2, 2)
    with made.place([]) as execute, ThreadPoolExecutor(1) as lane:
        waits = lane.submit(execute, Item("1", sleeps))
        made.close()
        with pytest.raises(Gone, match="have been ended"):
            waits.result(10)


def sleeps(item, cluster, watcher):
    time.sleep(60)


# The command.


def test_a_campaign_leaves_a_line_for_each_seed_and_one_page(run, folder):
    code, said = run(*COMMAND, "--seeds", "3", "--processes", "1")
    assert code == 1
    made = only(folder)
    assert sorted(row["seed"] for row in lines(made / "campaign.jsonl")) == [1, 2, 3]
    page = (made / "report.html").read_text()
    assert "broken from 3 of 3 seeds" in page and "The clock of redis-1 jumps" in page
    assert "3 of 3 seeds found something" in said
    for row in lines(made / "campaign.jsonl"):
        assert row["broken"][0] == "lease_exclusion" and row["schedule"]


def test_a_stopped_campaign_resumes(run, folder):
    """The process was killed while it wrote the last line."""
    run(*COMMAND, "--seeds", "4", "--processes", "1")
    made = only(folder)
    whole = lines(made / "campaign.jsonl")
    text = (made / "campaign.jsonl").read_text().splitlines(keepends=True)
    (made / "campaign.jsonl").write_text("".join(text[:2]) + text[2][:40])
    left = resumed("redis", made.name)
    assert [item.seed for item in left.left(1)] == [row["seed"] for row in whole[2:]]


def test_a_resumed_campaign_has_the_same_result_as_an_uninterrupted_one(run, folder):
    run(*COMMAND, "--seeds", "4", "--processes", "1")
    made = only(folder)
    whole = hunts.total(resumed("redis", str(made)))
    text = (made / "campaign.jsonl").read_text().splitlines(keepends=True)
    (made / "campaign.jsonl").write_text(text[0] + text[1][:40])
    code, said = run("hunt", "redis", "--resume", "latest", "--processes", "1")
    assert code == 1 and "1 done" in said
    again = hunts.total(resumed("redis", made.name))
    assert again.groups == whole.groups and again.schedules == whole.schedules


def test_without_a_counterexample_it_says_so(run, folder):
    arguments = ("hunt", "redis", "--faults", "packet", "--seed", "1", "--search", "exhaustive")
    code, said = run(*arguments, "--depth", "1", "--seeds", "2", "--processes", "1")
    assert code == 0 and "0 of 2 seeds found something" in said
    assert "no counterexample from 2 seeds" in (only(folder) / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seeds", "2", "--engine", "ray"), "there is no engine 'ray'; choose one of: local, da"),
        (("--engine", "dask"), "--engine dask needs --scheduler ADDRESS"),
        (("--scheduler", "tcp://127.0.0.1:1"), "--scheduler is for --engine dask"),
        (
            ("--hosts", "hosts.toml"),
            "needs no hosts: leave --hosts and --remote out, or add --conf",
        ),
        (("--seeds", "2", "--confirm"), "--confirm is for a hunt from one seed"),
        (("--resume", "yesterday"), "'yesterday' is not a campaign"),
        (("--resume", "latest", "--faults", "packet"), "--faults cannot be combined with --resume"),
    ],
)
def test_invalid_arguments_are_refused(run, arguments, said):
    code, words = run("hunt", "redis", *arguments)
    assert code == 254 and said in words


def test_a_campaign_is_resumed_without_the_name_of_its_lock(run):
    run(*COMMAND, "--seeds", "1", "--processes", "1")
    _, words = run("hunt", "--resume", "latest", "--processes", "1")
    assert "Hunting redis from 1 seeds, 1 done" in words


def test_a_campaign_on_another_lock_is_not_resumed(run):
    run(*COMMAND, "--seeds", "1", "--processes", "1")
    with pytest.raises(BadArguments, match="the campaign hunts redis, not redlock"):
        resumed("redlock", "latest")


# Messages for CI and programs.


def test_a_hunt_writes_where_it_is_told_and_tells_a_ci_and_a_program(run, tmp_path):
    files = ("--results", str(tmp_path / "there"), "--junit", str(tmp_path / "junit.xml"))
    code, said = run(*COMMAND, "--json", *files, "--summary", str(tmp_path / "summary.md"))
    (last,) = map(json.loads, said.splitlines())
    assert code == last["exit_code"] == 1
    assert last["rows"]["seed 1"]["outcome"].startswith("broken: lease_exclusion")
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "The clock of redis-1 jumps" in suite.findtext("testcase/failure")
    assert "**seed 1**: broken: lease_exclusion" in (tmp_path / "summary.md").read_text()
    assert list((tmp_path / "there" / "hunt-redis").glob("2*"))


def test_a_campaign_tells_them_too(run, tmp_path):
    words = ("--seeds", "2", "--parallel", "2", "--json", "--junit", str(tmp_path / "junit.xml"))
    code, said = run(*COMMAND, *words)
    first, *rows, last = map(json.loads, said.splitlines())
    assert (code, first["kind"], last["exit_code"]) == (1, "campaign", 1)
    assert sorted(row["seed"] for row in rows) == [1, 2] and "states" not in rows[0]
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")


def test_a_hunt_of_nothing_passes(run, tmp_path):
    words = ("--faults", "packet", "--seed", "1", "--search", "exhaustive", "--depth", "1")
    code, _ = run("hunt", "redis", *words, "--junit", str(tmp_path / "junit.xml"))
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (code, suite.get("tests"), suite.get("failures")) == (0, "1", "0")


# Dask.


@pytest.fixture
def dask(tmp_path):
    with dasked(tmp_path) as made:
        yield made


@needs_dask
def test_dask_s_workers_give_the_same_result_even_if_one_is_killed(setting, dask):
    seeds, there, killed = range(1, 41), {}, False
    with (
        closing(Workers(dask.address, ahead=8)) as workers,
        workers.place([]) as execute,
        ThreadPoolExecutor(workers.lanes) as lanes,
    ):
        for outcome in lanes.map(execute, items(setting, seeds)):
            there |= without_times([outcome])
            if not killed and len(there) >= 5:
                killed = True
                dask.workers[0].send_signal(signal.SIGKILL)
    assert killed and dask.workers[0].wait(120) == -signal.SIGKILL
    assert there == alone(setting, seeds)


@needs_dask
def test_a_campaign_on_dask_leaves_the_same_page_as_here(run, dask):
    on_dask = ("--engine", "dask", "--scheduler", dask.address)
    assert run(*COMMAND, "--seeds", "4", *on_dask)[0] == 1
    there = hunts.total(resumed("redis", "latest"))
    assert run(*COMMAND, "--seeds", "4", "--processes", "1")[0] == 1
    here = hunts.total(resumed("redis", "latest"))
    assert there.groups == here.groups


@needs_dask
def test_a_scheduler_that_does_not_answer_is_reported(run, monkeypatch):
    monkeypatch.setattr("fencepost.harness.campaigns.dask_executor.ANSWERS_S", 1)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        code, said = run("hunt", "redis", "--engine", "dask", "--scheduler", address)
    assert code == 254 and f"the scheduler {address} did not answer within 1 s" in said
