"""A person uses the command: its exit codes, interrupts, and no leftovers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cluster import own
from tests.cluster.healed import healed

SERVERS = ["redis-1"]
FENCEPOST = [sys.executable, "-m", "fencepost"]
RUN = ["test", "redis", "--nemesis", "partition,pause", "--time", "40s", "--ttl", "1s"]
RUN += ["--hold", "0..20ms", "--think", "0..20ms", "--contention", "all", "--concurrency", "2"]


@pytest.fixture
def command(tmp_path):
    environment = os.environ | {"FENCEPOST_RESULTS": str(tmp_path)}

    def run(*arguments, wait=True):
        process = subprocess.Popen(
            [*FENCEPOST, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            # A shell that runs the tests in the background ignores Ctrl-C, and its children inherit
            # that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        if not wait:
            return process
        out, _ = process.communicate(timeout=900)
        return process.returncode, out

    yield run
    healed(run)


def wait_for_ops(folder: Path, count: int) -> Path:
    end = time.monotonic() + 240
    while time.monotonic() < end:
        for history in folder.glob("redis/*Z/history.jsonl"):
            if history.read_bytes().count(b"\n") >= count:
                return history.parent
        time.sleep(0.1)
    raise AssertionError("the run recorded nothing")


def test_a_sound_run_exits_with_0_and_of_several_locks_every_one_is_granted(command, tmp_path):
    code, out = command("test", "redis", "--locks", "3", "--time", "3s", "-o", "token=incr",
                        "--guard", "fenced", "--seed", "3")  # fmt: skip

    assert code == 0, out
    run = tmp_path / "latest"
    assert json.loads((run / "results.json").read_text())["valid"] is True
    assert json.loads((run / "run.json").read_text())["versions"]["redis"].startswith("Redis")
    assert (run / "report.html").is_file()
    assert (run / "nodes" / "redis-1" / "server.log").stat().st_size > 0
    assert own.nodes() == []
    ops = [json.loads(line) for line in (run / "history.jsonl").open()]
    done = [op for op in ops if op["type"] == "ok"]
    assert {op["value"]["lock"] for op in done if op["f"] == "acquire"} == {
        "orders-1", "orders-2", "orders-3"
    }  # fmt: skip
    written = {op["value"]["resource"] for op in done if op["f"] == "write"}
    assert written == {"account-1", "account-2", "account-3"}
    # The run's final reads of each resource, after all writes.
    reads = [op for op in ops if op["f"] == "read" and "hold" not in op["value"]]
    assert {op["value"]["resource"] for op in reads if op["type"] == "ok"} == written


def test_a_violation_that_is_not_named_stops_no_run(here, results):
    """Two clients hold the lock from the first moment on, and neither ends the other's hold."""
    code, out = here("test", "broken-always-yes", "--time", "4s", "--until", "ownership",
                     "--hold", "0..20ms", "--think", "0..20ms", "--concurrency", "2")  # fmt: skip

    assert code == 1, out
    found = json.loads((results / "latest" / "results.json").read_text())
    assert found["checkers"]["lease_exclusion"]["valid"] is False
    # Measured from the history, which ends with the last answer: up to one rest before the clients
    # stop.
    assert found["stats"]["duration_s"] > 3.5


def test_a_violation_that_is_named_stops_a_run_early(here, results):
    named = "ownership,lease_exclusion"
    code, out = here("test", "broken-always-yes", "--time", "240s", "--until", named,
                     "--hold", "0..20ms", "--think", "0..20ms", "--concurrency", "2")  # fmt: skip

    assert code == 1 and "INVALID" in out, out
    found = json.loads((results / "latest" / "results.json").read_text())
    assert found["stats"]["duration_s"] < 200
    assert "run" not in found["checkers"]


def test_a_command_that_would_remove_a_run_s_cluster_names_its_owner(command, tmp_path):
    """The run continues until Ctrl-C, is judged on its way out, and leaves nothing."""
    process = command(*RUN, wait=False)
    run = wait_for_ops(tmp_path, 200)

    code, out = command("cluster", "down")
    assert code == 255 and f"(pid {process.pid})" in out, out
    assert process.poll() is None
    ends_judged(process, signal.SIGINT, run)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_is_judged_on_its_way_out_and_leaves_nothing(command, tmp_path, number):
    process = command(*RUN, wait=False)
    ends_judged(process, number, wait_for_ops(tmp_path, 200))


def ends_judged(process: subprocess.Popen, number: int, run: Path) -> None:
    process.send_signal(number)
    out, _ = process.communicate(timeout=600)

    # A fault may have broken the lock by then.
    results = json.loads((run / "results.json").read_text())
    assert results["valid"] is not True
    assert "KeyboardInterrupt" in results["checkers"]["run"]["summary"], results
    assert process.returncode == 130, out
    assert own.nodes() == []


def test_the_next_run_removes_leftovers_of_a_killed_one(command, tmp_path):
    process = command(*RUN, wait=False)
    wait_for_ops(tmp_path, 50)
    process.kill()
    process.communicate()

    code, out = command("test", "redis", "--time", "1s", "--concurrency", "1")

    assert code == 0, out
    assert "earlier run left" in out
    assert own.nodes() == []


def test_zookeeper_and_etcd_are_healthy_only_while_a_quorum_answers(command):
    code, out = command("cluster", "up", "zookeeper", "etcd")
    try:
        assert code == 0, out
        code, out = command("cluster", "status")
        assert code == 0, out
        members = [one for one in own.nodes() if one.endswith(("-2-1", "-3-1"))]
        assert len(members) == 4
        subprocess.run(["docker", "kill", *members], check=True, capture_output=True)
        # etcd's last member still listens on its port; without a quorum it is not healthy.
        end = time.monotonic() + 240
        while "NOT HEALTHY" not in out or out.count("NOT HEALTHY") < 2:
            assert time.monotonic() < end, out
            code, out = command("cluster", "status")
        assert code == 1
    finally:
        command("cluster", "down")
    assert own.nodes() == []
