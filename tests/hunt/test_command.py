"""A person calls `fencepost hunt`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fencepost.harness.command import app
from fencepost.harness.command.hunt import _print_busy
from fencepost.hunt.search.search import Tried
from tests.full_disk import no_file_may_grow

pytestmark = pytest.mark.slow


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line; return its exit code and its output."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fencepost", "hunt", *arguments])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


ONE = ("--seed", "1", "--processes", "1")
LOCKS = Path(__file__).parent / "locks.py"
ZOOKEEPER = Path(__file__).parent / "locks_zookeeper.py"
PROCESSES = Path(__file__).parent / "other_processes.py"


def test_a_counterexample_exits_with_1_its_story_and_a_report(run, tmp_path):
    code, said = run("broken-no-owner-check", "--faults", "pause", *ONE)
    assert code == 1
    assert "1. client-" in said
    assert "is violated" in said
    (folder,) = tmp_path.glob("hunt-*/*Z")
    test = json.loads((folder / "test.json").read_text())
    assert test["simulated"] is True
    assert test["hunt"]["story"][0].startswith("1. ")
    report = (folder / "report.html").read_text()
    assert "The story" in report
    assert '<svg class="messages"' in report
    assert "client-1 to redis-1: SET lock:orders" in report
    assert json.loads((folder / "messages.json").read_text())["messages"]
    assert "No real server was involved" in report
    assert json.loads((folder / "results.json").read_text())["valid"] is False


def test_a_sound_lock_exits_with_0_and_the_number_of_schedules(run):
    code, said = run("redis", "--faults", "partition", "--budget", "1s", *ONE)
    assert code == 0
    assert "No counterexample in" in said
    assert "This does not show that redis is correct" in said
    assert "safe" not in said


def test_a_clean_hunt_says_what_it_covered_on_the_screen_and_as_json(run):
    asked = ("redis", "--faults", "partition", "--budget", "1s", *ONE)
    code, said = run(*asked)
    for words in ("struck: ", "histories: ", "bound: an error that one such schedule in "):
        assert f"  {words}" in said
    _, said = run(*asked, "--json")
    line = json.loads(next(one for one in said.splitlines() if '"coverage"' in one))
    covered = line["coverage"]
    assert code == line["exit_code"] == 0
    assert covered["struck"] == len(covered["cells"])
    assert covered["struck"] + len(covered["missed"]) == covered["existing"]
    assert covered["clean"] == covered["of"] > covered["one_in"] > 0


def test_a_clean_campaign_has_the_bound_of_all_its_seeds_on_its_page(run, tmp_path):
    code, said = run("redis", "--faults", "partition", "--budget", "0.5s", "--seeds", "2", *ONE)
    assert code == 0 and "bound: " in said
    (folder,) = tmp_path.glob("campaign-*/*Z")
    page = (folder / "report.html").read_text()
    lines = [json.loads(row) for row in (folder / "campaign.jsonl").read_text().splitlines()]
    clean = sum(line["clean"] for line in lines)
    assert f"after {clean:,} schedules without a counterexample" in page
    assert "An error that one such schedule in" in page
    assert "safe" not in page.partition("<body>")[2]


def test_a_name_of_the_last_version_is_taken_with_one_line_that_has_the_new_one(run):
    code, said = run("redis", "--faults", "drop", "--budget", "1s", *ONE)
    warnings = [line for line in said.splitlines() if "warning" in line]
    assert (code, len(warnings)) == (0, 1)
    assert "--faults drop is called packet/loss now" in warnings[0]
    assert "Hunting redis, seed 1: packet/loss;" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("etcd9",), "there is no lock 'etcd9'"),
        (("etcd", "--faults", "memory"), "only Redis servers have such a limit"),
        (
            ("redis", "--server", "redis=valkey"),
            "there is no model of valkey, only of redis, etcd, zookeeper",
        ),
        (("etcd", "--server", "etcd=9"), "there is no etcd '9'; choose one of: 3.5, 3.4"),
        (("etcd", "--faults", "clock"), "run on monotonic clocks"),
        (("./mine.py:Lock", "--servers", "redis:1"), "there is no file ./mine.py"),
        ((f"{LOCKS}:Lock", "--servers", "redis:1"), "has no 'Lock' at its top level"),
        ((f"{LOCKS}:Right",), "Right needs servers: add for example --servers"),
        ((f"{ZOOKEEPER}:Words", "--servers", "zookeeper:1", *ONE), "no four-letter word envi"),
        (("zookeeper", "--faults", "clock"), "run on monotonic clocks"),
        ((f"{LOCKS}:NoOrders", "--servers", "redis:1", *ONE), "no command GEOADD"),
        ((f"{PROCESSES}:Starts", "--servers", "redis:1"), "imports subprocess"),
        ((f"{LOCKS}:Loops", "--servers", "redis:1", *ONE), "in a loop without a sleep"),
        (("redlock", "--servers", "redis:1"), "--servers is for user locks"),
        (("node-redlock",), "on this machine"),
        (("redlock", "--budget", "0"), "budget"),
        (("redlock", "--search", "lucky"), "there is no search 'lucky'; choose one of: random, ex"),
        (("redlock", "--depth", "3"), "--depth is for --search exhaustive"),
        (("redlock", "--faults", "earthquake"), "there is no fault 'earthquake'"),
        (("redlock", "--faults", "failover"), "redlock cannot fail over"),
        (("redlock", "--goal", "beauty"), "there is no checker 'beauty'"),
        (("redlock", "--goal", "fencing"), "it has nothing to check here"),
        (("redlock", "--guard", "fenced"), "guard fenced needs a fencing token"),
        (("redlock", "--clients", "1"), "--clients"),
        (("redlock", "-o", "token"), "has no value"),
    ],
)
def test_invalid_arguments_exit_with_254_and_a_sentence(run, arguments, said):
    code, words = run(*arguments)
    assert code == 254
    assert said in words


def test_a_lock_that_raises_ends_with_255_and_its_line(run):
    code, said = run(f"{LOCKS}:Raises", "--servers", "redis:1", *ONE)
    assert code == 255
    assert "name 'undefined' is not defined" in said
    assert "locks.py" in said
    assert "at step" in said


def test_a_counterexample_of_a_user_lock_has_a_report_and_its_file(run, tmp_path):
    code, said = run(
        f"{LOCKS}:Deletes",
        "--servers",
        "redis:1",
        "--faults",
        "pause",
        "--goal",
        "ownership",
        *ONE,
    )
    assert code == 1
    assert "ownership is violated" in said
    (folder,) = tmp_path.glob("hunt-*/*Z")
    assert (folder / "own" / "locks.py").read_bytes() == LOCKS.read_bytes()
    report = (folder / "report.html").read_text()
    assert '<ol class="story">' in report
    assert '<svg class="messages"' in report


def test_a_counterexample_with_bytes_that_are_no_text_has_a_report(run, tmp_path):
    code, said = run(f"{LOCKS}:Binary", "--servers", "redis:1", "--faults", "pause", *ONE)
    assert code == 1, said
    (folder,) = tmp_path.glob("hunt-*/*Z")
    assert "SET \N{REPLACEMENT CHARACTER}" in (folder / "messages.json").read_text()
    assert '<svg class="messages"' in (folder / "report.html").read_text()


@pytest.mark.parametrize(("cpu_s", "said"), [(15.0, "had 25% of the processor time"), (50.0, "")])
def test_a_hunt_on_a_busy_machine_says_so(capsys, cpu_s, said):
    _print_busy(Tried(seconds=30.0, cpu_s=cpu_s), processes=2)
    shown = capsys.readouterr().out
    assert said in shown
    assert bool(shown) is bool(said)


def test_a_counterexample_on_a_full_disk_names_its_file_and_leaves_none_torn(run, tmp_path):
    deletes = (f"{LOCKS}:Deletes", "--servers", "redis:1", "--faults", "pause", "--goal")
    with no_file_may_grow():
        code, said = run(*deletes, "ownership", *ONE)
    assert code == 255 and str(tmp_path) in said and "a file of the run" not in said, said
    assert [path.name for path in tmp_path.glob("hunt-*/*Z/*") if path.is_file()] == []
