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

from fencepost.workloads.client import PROGRAM
from tests.cluster.healed import healed

FENCEPOST = [sys.executable, "-m", "fencepost"]
RUN = ["test", "redlock", "--nemesis", "partition,pause", "--time", "40s", "--ttl", "1s"]
RUN += ["--hold", "0..20ms", "--think", "0..20ms", "--contention", "all"]


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
        out, _ = process.communicate(timeout=300)
        return process.returncode, out

    yield run
    healed(run)


def nodes_up():
    listed = subprocess.run(
        ["docker", "ps", "-aq", "--filter", "label=io.fencepost.cluster"],
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split()


def wait_for_ops(folder: Path, count: int) -> Path:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        for history in folder.glob("redlock/*Z/history.jsonl"):
            if history.read_bytes().count(b"\n") >= count:
                return history.parent
        time.sleep(0.1)
    raise AssertionError("the run recorded nothing")


def test_a_sound_run_exits_with_0_and_leaves_its_results(command, tmp_path):
    code, out = command("test", "redis", "--time", "2s", "--seed", "3", "--concurrency", "2")

    assert code == 0, out
    run = tmp_path / "latest"
    assert json.loads((run / "results.json").read_text())["valid"] is True
    assert json.loads((run / "run.json").read_text())["versions"]["redis"].startswith("Redis")
    assert (run / "report.html").is_file()
    assert (run / "nodes" / "redis-1" / "server.log").stat().st_size > 0
    assert nodes_up() == []


def test_of_several_locks_every_one_is_granted_and_every_resource_written(command, tmp_path):
    code, out = command("test", "redis", "--locks", "3", "--time", "3s", "-o", "token=incr",
                        "--guard", "fenced", "--seed", "3")  # fmt: skip

    assert code == 0, out
    run = tmp_path / "latest"
    assert json.loads((run / "results.json").read_text())["valid"] is True
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


def test_a_violation_that_is_not_named_stops_no_run(command, tmp_path):
    """Two clients hold the lock from the first moment on, and neither ends the other's hold."""
    code, out = command("test", "broken-always-yes", "--time", "6s", "--until", "ownership",
                        "--hold", "0..20ms", "--think", "0..20ms")  # fmt: skip

    assert code == 1, out
    results = json.loads((tmp_path / "latest" / "results.json").read_text())
    assert results["checkers"]["lease_exclusion"]["valid"] is False
    # Measured from the history, which ends with the last answer: up to one rest before the clients
    # stop.
    assert results["stats"]["duration_s"] > 5.5


def test_a_violation_that_is_named_stops_a_run_early(command, tmp_path):
    named = "ownership,lease_exclusion"
    code, out = command("test", "broken-always-yes", "--time", "60s", "--until", named,
                        "--hold", "0..20ms", "--think", "0..20ms")  # fmt: skip

    assert code == 1, out
    results = json.loads((tmp_path / "latest" / "results.json").read_text())
    assert results["stats"]["duration_s"] < 40
    assert "run" not in results["checkers"]


def test_a_broken_lock_exits_with_1(command):
    code, out = command("test", "broken-always-yes", "--time", "2s", "--concurrency", "3")

    assert code == 1, out
    assert "INVALID" in out


def test_a_killed_run_can_be_healed_and_its_history_analyzed(command, tmp_path):
    process = command(*RUN, wait=False)
    run = wait_for_ops(tmp_path, 200)
    process.kill()
    process.communicate()
    assert nodes_up()

    code, out = healed(command)
    assert code == 0 and "Removed" in out, out
    assert nodes_up() == []

    code, out = command("analyze", str(run))
    assert code in (1, 2), out
    results = json.loads((run / "results.json").read_text())
    assert results["valid"] is not True
    assert results["stats"]["ops"] > 50
    times = [json.loads(line)["time"] for line in (run / "history.jsonl").open()]
    assert times == sorted(times)


def test_the_next_run_removes_leftovers_of_a_killed_one(command, tmp_path):
    process = command(*RUN, wait=False)
    wait_for_ops(tmp_path, 50)
    process.kill()
    process.communicate()

    code, out = command("test", "redis", "--time", "1s", "--concurrency", "1")

    assert code == 0, out
    assert "earlier run left" in out
    assert nodes_up() == []


@pytest.fixture
def others():
    """Create another user's objects on this machine that conflict, and a check that they exist."""

    def sh(command):
        return subprocess.run(
            command, shell=True, capture_output=True, text=True, check=False
        ).stdout.strip()

    name, rule = "fencepost-somebody-1", "INPUT -s 192.0.2.7 -j DROP -m comment --comment FENCEPOST"
    # A client's program has this command line, and is stopped.
    process = subprocess.Popen([sys.executable, "-c", "input()", PROGRAM])
    process.send_signal(signal.SIGSTOP)
    sh(f"iptables -w -A {rule}; iptables -w -N FENCEPOST-INBOX")
    sh(f"docker network create {name}")
    sh(f"docker run -d --name {name} --network {name} --entrypoint sleep fencepost-node 600")

    def there():
        stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        rules = sh("iptables -w -S")
        return {
            "process": stat == "T",
            "rule": "-s 192.0.2.7/32" in rules,
            "chain": "-N FENCEPOST-INBOX" in rules,
            "container": sh(f"docker inspect -f '{{{{.State.Running}}}}' {name}") == "true",
            "network": sh(f"docker network inspect -f '{{{{.Name}}}}' {name}") == name,
        }

    yield there
    process.kill()
    process.wait()
    sh(f"iptables -w -D {rule}; iptables -w -X FENCEPOST-INBOX")
    sh(f"docker rm -f {name}; docker network rm {name}")


def test_objects_of_other_users_are_never_touched(command, tmp_path, others):
    assert all(others().values()), others()
    process = command(*RUN, wait=False)
    wait_for_ops(tmp_path, 200)
    process.kill()
    process.communicate()
    code, out = healed(command)

    assert code == 0, out
    assert nodes_up() == []
    assert all(others().values()), others()
    code, out = command("heal", "--check")
    assert code == 0 and "Nothing is left" in out, out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_is_judged_on_its_way_out_and_leaves_nothing(command, tmp_path, number):
    process = command(*RUN, wait=False)
    run = wait_for_ops(tmp_path, 200)
    process.send_signal(number)
    out, _ = process.communicate(timeout=180)

    # A fault may have broken the lock by then.
    valid = json.loads((run / "results.json").read_text())["valid"]
    assert valid is not True
    assert process.returncode == (1 if valid is False else 130), out
    assert nodes_up() == []


def test_a_command_that_would_remove_a_run_s_cluster_names_its_owner(command, tmp_path):
    process = command(*RUN, wait=False)
    wait_for_ops(tmp_path, 10)

    code, out = command("cluster", "down")
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=180)

    assert code == 255
    assert str(process.pid) in out


def test_zookeeper_and_etcd_are_healthy_only_while_a_quorum_answers(command):
    code, out = command("cluster", "up", "zookeeper", "etcd")
    try:
        assert code == 0, out
        code, out = command("cluster", "status")
        assert code == 0, out
        for kind in ("zookeeper", "etcd"):
            for n in (2, 3):
                subprocess.run(["docker", "kill", f"fencepost_{kind}-{n}_1"], check=False)
                subprocess.run(["docker", "kill", f"fencepost-{kind}-{n}-1"], check=False)
        # etcd's last member still listens on its port; without a quorum it is not healthy.
        end = time.monotonic() + 60
        while "NOT HEALTHY" not in out or out.count("NOT HEALTHY") < 2:
            assert time.monotonic() < end, out
            code, out = command("cluster", "status")
        assert code == 1
    finally:
        command("cluster", "down")
    assert nodes_up() == []
