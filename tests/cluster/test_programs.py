"""User locks in any language on real servers: programs on the SDKs, and in an image."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import docker
import pytest

from fencepost.checker.history.history import read
from fencepost.harness.cluster import image, labels
from fencepost.harness.command.sdk import sdk
from fencepost.harness.errors import Crashed
from fencepost.harness.execute.run import run
from fencepost.harness.spec import from_arguments
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.workloads.scenarios.runs import SHORT
from tests.sdk.page import FILES, build

ROOT = Path(__file__).parents[2]
SERVERS = ["redis-1", *(f"etcd-{n}" for n in range(1, 4))]
HAS_GO = shutil.which("go") and Path("/usr/share/gocode/src/go.etcd.io/etcd/clientv3").is_dir()

LOCK = """
import socket, time
from fencepost_sdk import run

class MyLock:
    def __init__(self, servers, owner="me"):
        self.link = socket.create_connection(servers[0], 1)
        self.replies = self.link.makefile("rb")
        self.owner = f"{owner}-{time.monotonic_ns()}"

    def ask(self, command):
        self.link.sendall(command.encode() + b"\\r\\n")
        return self.replies.readline().strip()

    def acquire(self, name, ttl):
        return self.ask(f"SET {name} {self.owner} NX PX {round(ttl * 1000)}") == b"+OK"

    def release(self, name):
        script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1])"
        return self.ask(f'EVAL "{script} end return 0" 1 {name} {self.owner}') == b":1"

    def close(self):
        self.link.close()

run(MyLock)
"""


@pytest.fixture
def run_program(cluster, results):
    """Run a test of a program: `run_program("./worker", folder, "redis:1", nemesis=["pause"])`."""

    def carry_out(command, ship, servers, client_image="", options=None, **settings):
        asked = LockRequest(servers, program=command, ship=ship, client_image=client_image)
        name, own = resolve("", asked)
        settings = {"time": 3, "concurrency": 3, "seed": 1, **SHORT, **settings}
        spec = from_arguments.spec(name, options or {}, settings, own)
        return run(spec, cluster, lambda status: None)

    return carry_out


@pytest.fixture
def worker(tmp_path) -> Path:
    folder = tmp_path / "worker"
    sdk("python", folder)
    (folder / "worker.py").write_text(LOCK)
    return folder


@pytest.fixture
def besides(cluster):
    """List the containers of programs next to the cluster's nodes."""
    client = docker.from_env()

    def found() -> list[str]:
        every = labels.containers(client, cluster.project)
        return [str(one.name) for one in every if labels.PROGRAM_OF in one.labels]

    yield found
    client.close()


@pytest.mark.parametrize("in_image", [False, True], ids=["on the node", "in an image"])
def test_a_program_is_paused_killed_and_cut_off_wherever_it_runs(
    run_program, worker, besides, in_image
):
    its = f"{image.REPOSITORY}:latest" if in_image else ""
    outcome = run_program(
        "python3 worker.py",
        worker,
        "redis:1",
        its,
        {"owner": "mine"},
        nemesis=["pause:client", "kill:client", "partition:client"],
        time=12,
        interval=2,
        seed=5,
    )

    assert "run" not in outcome.verdicts, outcome.verdicts["run"].summary
    assert outcome.verdicts["faults"].valid is True, outcome.verdicts["faults"].summary
    assert outcome.verdicts["store"].valid is True
    assert outcome.results["stats"]["holds"] > 5
    assert {fault["family"] for fault in outcome.results["faults"]} >= {"pause", "kill"}
    history = read(outcome.folder / "history.jsonl")
    assert {op.process for op in history.clients()} > {0, 1, 2}  # successors of those killed
    assert besides() == []


def test_a_program_that_is_not_in_its_image_is_named_and_nothing_is_left(
    run_program, worker, besides
):
    with pytest.raises(
        Crashed, match=r"/app/none on client-1 did not report 'ready'; it ended with"
    ):
        run_program("/app/none", worker, "redis:1", f"{image.REPOSITORY}:latest")
    assert besides() == []


# The page runs the one in C# in an image with Mono, which the nodes do not have.
@pytest.mark.parametrize("language", [one for one in FILES if one != "csharp"])
def test_a_lock_of_the_page_is_sound_if_no_client_is_late(
    run_program, tmp_path, monkeypatch, language
):
    options = build(language, tmp_path, monkeypatch)
    program, ship = options["--program"], Path(options["--ship"])
    # Longer than a client waits for a processor on a busy machine.
    outcome = run_program(program, ship, options["--servers"], ttl="10s")

    assert outcome.valid is True, {n: v.summary for n, v in outcome.verdicts.items() if not v.valid}
    # A Java program needs seconds to start on a busy machine.
    assert outcome.results["stats"]["holds"] > 2


@pytest.mark.skipif(not HAS_GO, reason="golang-go and golang-etcd-server-dev are not installed")
def test_etcd_s_own_mutex_for_go_is_tested_under_partition_and_pause(run_program, tmp_path):
    """Its verdict is open: 3.4.23 grants to a waiter whose session expired while it waited."""
    script = ROOT / "sdk" / "examples" / "etcd-mutex" / "build.sh"
    subprocess.run([script, tmp_path], check=True)
    outcome = run_program(
        "./worker",
        tmp_path,
        "etcd:3",
        guard="fenced",
        nemesis=["partition", "pause:server"],
        time=10,
        interval=3,
    )

    assert "run" not in outcome.verdicts, outcome.verdicts["run"].summary
    assert outcome.verdicts["faults"].valid is True, outcome.verdicts["faults"].summary
    assert outcome.verdicts["store"].valid is True
    assert {"linearizable", "fencing", "lease_exclusion"} <= set(outcome.verdicts)
    assert outcome.results["stats"]["holds"] > 5
    granted = [op for op in read(outcome.folder / "history.jsonl") if op.type == "ok"]
    granted = [op.value for op in granted if op.f == "acquire"]
    assert all(value["token"] and value["deadline"] for value in granted)
