"""Campaigns hunt from many seeds, keep each result, merge them, resume, and run on Dask."""

from __future__ import annotations

import json
import random
import signal
import socket
import sys
from dataclasses import replace

import pytest

from fencepost.harness.campaigns import campaigns
from fencepost.harness.campaigns.executors import engine
from fencepost.harness.command import app
from fencepost.harness.errors import BadArguments
from fencepost.hunt.search.campaign import Item, Outcome, merged, work
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
    return [Item(one, seed, 60.0) for seed in seeds]


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
    alone = without_times(map(work, items(setting)))
    assert without_times(engine("local", None, 2)(items(setting))) == alone
    assert all(one.schedule for one in alone.values())


# The command.


def test_a_campaign_leaves_a_line_for_each_seed_and_one_page(run, folder):
    code, said = run(*COMMAND, "--seeds", "3", "--processes", "1")
    assert code == 1
    made = only(folder)
    assert sorted(row["seed"] for row in lines(made / "seeds.jsonl")) == [1, 2, 3]
    page = (made / "report.html").read_text()
    assert "broken from 3 of 3 seeds" in page and "The clock of redis-1 jumps" in page
    assert "3 of 3 seeds found something" in said
    for row in lines(made / "seeds.jsonl"):
        assert row["broken"][0] == "lease_exclusion" and row["schedule"]


def test_a_stopped_campaign_resumes(run, folder):
    """The process was killed while it wrote the last line."""
    run(*COMMAND, "--seeds", "4", "--processes", "1")
    made = only(folder)
    whole = lines(made / "seeds.jsonl")
    text = (made / "seeds.jsonl").read_text().splitlines(keepends=True)
    (made / "seeds.jsonl").write_text("".join(text[:2]) + text[2][:40])
    left = campaigns.resumed("redis", made.name)
    assert left.left == [row["seed"] for row in whole[2:]]


def test_a_resumed_campaign_has_the_same_result_as_an_uninterrupted_one(run, folder):
    run(*COMMAND, "--seeds", "4", "--processes", "1")
    made = only(folder)
    whole = merged(campaigns.resumed("redis", str(made)).done.values())
    text = (made / "seeds.jsonl").read_text().splitlines(keepends=True)
    (made / "seeds.jsonl").write_text(text[0] + text[1][:40])
    code, said = run("hunt", "redis", "--resume", "latest", "--processes", "1")
    assert code == 1 and "1 done" in said
    again = merged(campaigns.resumed("redis", made.name).done.values())
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
        (("--seeds", "2", "--confirm"), "--confirm is for a hunt from one seed"),
        (("--resume", "yesterday"), "there is no campaign 'yesterday'"),
        (("--resume", "latest", "--faults", "packet"), "takes all from the campaign that it names"),
    ],
)
def test_invalid_arguments_are_refused(run, arguments, said):
    code, words = run("hunt", "redis", *arguments)
    assert code == 254 and said in words


def test_a_campaign_on_another_lock_is_not_resumed(run):
    run(*COMMAND, "--seeds", "1", "--processes", "1")
    with pytest.raises(BadArguments, match="is a campaign on redis, and not on redlock"):
        campaigns.resumed("redlock", "latest")


# Dask.


@pytest.fixture
def dask(tmp_path):
    with dasked(tmp_path) as made:
        yield made


@needs_dask
def test_dask_s_workers_give_the_same_result_even_if_one_is_killed(setting, dask):
    here = without_times(map(work, items(setting, range(1, 41))))
    there, killed = {}, False
    for outcome in engine("dask", dask.address, None)(items(setting, range(1, 41))):
        there |= without_times([outcome])
        if not killed and len(there) >= 5:
            killed = True
            dask.workers[0].send_signal(signal.SIGKILL)
    assert killed and dask.workers[0].wait(10) == -signal.SIGKILL
    assert there == here


@needs_dask
def test_a_campaign_on_dask_leaves_the_same_page_as_here(run, dask):
    on_dask = ("--engine", "dask", "--scheduler", dask.address)
    assert run(*COMMAND, "--seeds", "4", *on_dask)[0] == 1
    there = merged(campaigns.resumed("redis", "latest").done.values())
    assert run(*COMMAND, "--seeds", "4", "--processes", "1")[0] == 1
    here = merged(campaigns.resumed("redis", "latest").done.values())
    assert there.groups == here.groups


@needs_dask
def test_a_scheduler_that_does_not_answer_is_reported(run, monkeypatch):
    monkeypatch.setattr("fencepost.harness.campaigns.executors.ANSWERS_S", 1)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        code, said = run("hunt", "redis", "--engine", "dask", "--scheduler", address)
    assert code == 254 and f"the scheduler {address} does not answer within 1 s" in said
