"""Injected failures of the harness' own environment: nothing is lost, nothing is left.

tests/harness/execute/test_injected.py injects each of them at every call, on a cluster in memory.
This file injects a sample into containers and their engine. The resource counts its writes itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fencepost.checker.history import history
from fencepost.harness.cluster import docker_calls, docker_engine, image
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.healing import heal, problems
from fencepost.harness.errors import Crashed
from fencepost.harness.execute import timed
from fencepost.harness.execute.run import run
from fencepost.harness.remote import agent
from fencepost.harness.remote.docker import DockerRemote
from fencepost.harness.remote.processes import marked
from fencepost.harness.remote.remote import NoAnswer, RemoteError
from fencepost.harness.servers import serverlog
from fencepost.harness.spec.spec import Spec
from fencepost.harness.spec.validation import validate
from fencepost.nemesis.schedule import Scheduled
from fencepost.node import vdso
from fencepost.node.patch import table
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.redis_register import key
from fencepost.workloads.scenarios.runs import SHORT
from tests.cluster.healed import Command, healed

SERVERS = ["redis-1"]
NODES = [*SERVERS, "storage", "client-1", "client-2"]
DAEMON, CONTAINERD = (
    Path("/var/run/docker.pid"),
    Path("/var/run/docker/containerd/containerd.pid"),
)
# On a busy machine it takes seconds to do something to a run.
WHILE_S = 12.0
PAUSE = Scheduled(1.0, 1.0, "pause", ["redis-1"], {})


def spec(**changed: Any) -> Spec:
    settings = {"concurrency": 2, "time_s": 4.0, "seed": 1, "ttl_ms": 500, "liveness_bound_s": 1.0}
    options = LOCKS["redis"].read_options({})
    return validate(Spec("injected", "redis", options, **{**settings, **SHORT, **changed}))


@pytest.fixture
def few(cluster, results, monkeypatch) -> Iterator[ComposeCluster]:
    """Return the shared cluster, of which a test may break NODES: they are made good after it."""
    monkeypatch.setattr(timed, "_REST_S", 1.0)
    yield cluster
    monkeypatch.undo()
    cluster.up([*NODES, *cluster.nodes], image.ensure(print))
    heal(cluster, NODES)


@contextmanager
def once_it_works(results: Path, act: Callable[[], object], ops: int = 50) -> Iterator[None]:
    """Do something as soon as a run, which must last longer, has recorded this number of ops."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            for found in results.glob("*/*Z/history.jsonl"):
                if found.read_bytes().count(b"\n") >= ops:
                    act()
                    return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def counted(cluster: ComposeCluster) -> int:
    """Return how many writes the resource accepted, by its own count."""
    asked = cluster.remote("storage").run(["redis-cli", "hget", key("account"), "version"])
    return int(asked.out.strip() or 0)


def assert_nothing_is_lost(folder: Path, stored: int) -> None:
    writes = [op for op in history.read(folder / "history.jsonl") if op.f == "write"]
    done = sum(op.type == "ok" for op in writes)
    unknown = sum(op.type == "info" for op in writes)
    assert done <= stored <= done + unknown


@pytest.mark.parametrize("node", ["client-1", "redis-1", "storage"])
def test_a_run_whose_node_is_removed_is_judged_and_open(few, results, node):
    container = few._containers[node]
    remove = ["docker", "rm", "-f", container]
    with once_it_works(results, lambda: subprocess.run(remove, capture_output=True, check=True)):
        outcome = run(spec(time_s=WHILE_S), few, lambda status: None, schedule=[])

    assert outcome.valid == "unknown", outcome.results
    found = {name: verdict.valid for name, verdict in outcome.verdicts.items()}
    assert False not in found.values(), found
    ops = history.read(outcome.folder / "history.jsonl")
    lost = [op.value["targets"] for op in ops if op.f == "lost-node"]
    # Otherwise liveness would blame the lock if this fault hit its holder.
    assert lost == ([[node], [node]] if node == "redis-1" else [])


def test_killed_stopped_and_faulty_clients_are_named_and_other_events_are_kept(few, results):
    def strike() -> None:
        for node, number in (("client-1", signal.SIGKILL), ("client-2", signal.SIGSTOP)):
            remote = few.remote(node)
            pid = programs(remote)[-1]
            rubbish = r"caf\351 is no event\n{\"time\": 1\n"
            script = (
                f"for fd in /proc/{pid}/fd/*; do case $(readlink $fd) in "
                f"*fencepost-spool*) printf '{rubbish}' >> $fd;; esac; done"
            )
            remote.run(["bash", "-c", script])
            remote.signal(pid, number)

    with once_it_works(results, strike):
        outcome = run(spec(time_s=WHILE_S), few, lambda status: None, schedule=[])

    notes = " ".join(outcome.results["notes"])
    assert outcome.valid == "unknown"
    assert "client-1 did not stop its work: its program has ended." in notes
    assert "client-2 did not stop its work: " in notes
    assert "client-1 wrote 2 lines that are no events" in notes, notes
    assert_nothing_is_lost(outcome.folder, counted(few))


def programs(remote) -> list[int]:
    """Return the pids of the client on a node: its pump, and then the program."""
    return sorted(process.pid for process in marked(remote, "client"))


def test_a_call_that_fails_once_loses_and_leaves_nothing(few, results, monkeypatch):
    """In every phase: during set-up, the run, healing and cleanup."""
    asking_it = DockerRemote._ask
    made, failing = [0], [0]

    def ask(self, request, what, **options):
        made[0] += 1
        if made[0] == failing[0]:
            raise NoAnswer(f"{self.node}: {what}: the connection was lost")
        return asking_it(self, request, what, **options)

    monkeypatch.setattr(DockerRemote, "_ask", ask)
    run(spec(time_s=1.5), few, lambda status: None, schedule=[PAUSE])
    every = made[0]
    for number in (1, every // 4, every // 2, every - 12, every - 8, every - 2):
        made[0], failing[0] = 0, number
        with suppress(RemoteError, Crashed):
            run(spec(time_s=1.5), few, lambda status: None, schedule=[PAUSE])
        failing[0] = 0
        (folder,) = results.glob("injected/latest")
        if (folder / "history.jsonl").stat().st_size:
            assert_nothing_is_lost(folder, counted(few))
        # A run that fails during set-up leaves servers that it has not started yet.
        left = [what for what in problems(few, NODES) if "server is down" not in what]
        assert left == [], number


THERE_IS_ANOTHER = Path("/run/systemd/system").is_dir() or not docker_engine._DAEMON_LOG.exists()


@pytest.fixture
def daemons(monkeypatch) -> Iterator[Callable[[Path, int], None]]:
    """Send a signal to the engine or to its containerd, both of which continue or restart after."""
    if THERE_IS_ANOTHER:
        pytest.skip("the engine of this machine was not started by fencepost")
    monkeypatch.setattr(docker_calls, "CALL_S", 5)
    struck = set()

    def send(which: Path, number: int) -> None:
        pid = int(which.read_text())
        assert Path(f"/proc/{pid}/comm").read_text().strip() in ("dockerd", "containerd")
        struck.add(pid)
        os.kill(pid, number)

    yield send
    for pid in struck:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    docker_engine.ensure(print)


@pytest.fixture
def command(in_process, monkeypatch) -> Command:
    """Run the command line in this process; return its exit code and output."""
    monkeypatch.setattr(timed, "_REST_S", 1.0)
    monkeypatch.setattr(agent, "_SLACK_S", 1.0)
    monkeypatch.setattr(serverlog, "_SEARCH_S", 1.0)
    return in_process


RUN = ("test", "redis", "--time", "3s", "--ttl", "500ms", "--concurrency", "2",
       "--hold", "0..20ms", "--think", "0..20ms", "--contention", "all")  # fmt: skip
HUNG, GONE = "The engine hangs: restart it", "no engine runs"


@pytest.mark.alone
@pytest.mark.parametrize(
    ("which", "number", "words", "valid"),
    [
        (DAEMON, signal.SIGSTOP, HUNG, "unknown"),
        (DAEMON, signal.SIGKILL, GONE, "unknown"),
        # Programs in containers need no containerd: only the removal fails.
        (CONTAINERD, signal.SIGSTOP, HUNG, True),
    ],
    ids=["dockerd hangs", "dockerd dies", "containerd hangs"],
)
def test_an_engine_that_hangs_or_dies_within_a_run_is_a_sentence_and_heal_removes_the_rest(
    daemons, command, results, which, number, words, valid
):
    # A run whose clients are silent waits for a grant for as long as this bound.
    bound = () if valid is True else ("--liveness-bound", "2s")
    with once_it_works(results, lambda: daemons(which, number)):
        code, said = command(*RUN, *bound)
    assert code == 255, said
    assert words in said and "run `fencepost heal` to remove what is left" in said, said
    assert "Traceback" not in said and "a defect of fencepost" not in said, said
    judged = (results / "redis" / "latest" / "results.json").read_text()
    assert f'"valid": {"true" if valid is True else chr(34) + valid + chr(34)}' in judged

    if number == signal.SIGSTOP:
        daemons(which, signal.SIGCONT)
    else:
        docker_engine.ensure(print)
    code, said = healed(command)
    assert code == 0 and "Removed" in said, said
    assert command("heal", "--check")[0] == 0


@pytest.mark.alone
def test_an_engine_that_is_restarted_within_a_run_leaves_it_open_and_nothing_behind(
    daemons, command, results
):
    def restart() -> None:
        daemons(DAEMON, signal.SIGKILL)
        docker_engine.ensure(print)

    with once_it_works(results, restart):
        code, said = command(*RUN)
    # It is slow, and the nodes' removal may start before it answers again.
    assert code == 2 or (code == 255 and GONE in said), said
    docker_engine.ensure(print)
    assert healed(command)[0] == 0
    assert command("heal", "--check")[0] == 0


def test_a_full_disk_ends_a_run_with_the_history_that_there_was_room_for(few, results):
    results.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", results], check=True)
    try:
        with pytest.raises(OSError, match="No space left on device"):
            run(spec(time_s=30.0), few, lambda status: None, schedule=[PAUSE])
        (kept,) = results.glob("injected/2*/history.jsonl")
        lines = kept.read_bytes().splitlines(keepends=True)
        assert len(lines) > 200 and all(line.endswith(b"}\n") for line in lines)
        done = sum(op.f == "write" and op.type == "ok" for op in history.read(kept))
        assert done <= counted(few)
        assert problems(few, NODES) == []
    finally:
        subprocess.run(["umount", results], check=True)


HOUR_NS = 3600 * 10**9


def test_a_step_of_the_harness_clock_changes_nothing(results):
    """Return offsets of a year ahead and two hours back, by its own calls of the clock."""
    environment = os.environ | {"FENCEPOST_RESULTS": str(results)}
    words = [sys.executable, "-m", "fencepost", *RUN]
    command = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    steps = iter([365 * 24 * HOUR_NS, -2 * HOUR_NS])

    def step() -> None:
        for offset_ns in steps:
            vdso.skew(command.pid, table("wall", offset_ns, 1.0, 0))
            time.sleep(0.5)

    with once_it_works(results, step):
        said, _ = command.communicate(timeout=600)
    assert command.returncode == 0, said
    assert next(steps, None) is None
