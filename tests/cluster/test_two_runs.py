"""Two runs on one machine at once have a cluster each, and neither touches the other's."""

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

FENCEPOST = [sys.executable, "-m", "fencepost"]


@pytest.fixture
def started(tmp_path):
    """Start commands, each with results of its own; at the end nothing of them is left."""
    processes = []

    def start(name, *arguments):
        process = subprocess.Popen(
            [*FENCEPOST, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"FENCEPOST_RESULTS": str(tmp_path / name)},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
    assert healed()[0] == 0


def recording(folder: Path) -> Path:
    """Return the run's folder, once its history has started to grow."""
    end = time.monotonic() + 240
    while time.monotonic() < end:
        for history in folder.glob("redis/*Z/history.jsonl"):
            if history.read_bytes().count(b"\n") >= 20:
                return history.parent
        time.sleep(0.1)
    raise AssertionError(f"nothing was recorded in {folder}")


def test_two_runs_at_once_have_a_network_each_and_a_killed_one_is_removed_without_the_other(
    started, tmp_path
):
    test = ("test", "redis", "--concurrency", "2", "--ttl", "5s", "--seed", "7")
    living = started("living", *test, "--nemesis", "pause:server,partition@4s", "--time", "300s")
    run = recording(tmp_path / "living")
    doomed = started("doomed", *test, "--time", "300s")
    recording(tmp_path / "doomed")

    used = own.used()
    assert len(used) == len(set(used.values())) == 2

    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    code, said = healed()
    assert code == 0 and "nodes that a run had left" in said, said
    assert f"(pid {living.pid}) is using fencepost" in said
    assert len(own.used()) == 1

    struck = (run / "history.jsonl").read_bytes().count(b'"nemesis"')
    end = time.monotonic() + 240
    while (run / "history.jsonl").read_bytes().count(b'"nemesis"') < struck + 4:
        assert living.poll() is None and time.monotonic() < end, "it was not left alone"
        time.sleep(0.1)
    living.send_signal(signal.SIGINT)
    out, _ = living.communicate(timeout=600)
    assert living.returncode == 130, out
    results = json.loads((run / "results.json").read_text())
    found = {name: verdict["valid"] for name, verdict in results["checkers"].items()}
    assert found["faults"] is True and results["faults"]
    assert False not in found.values(), found
    assert own.used() == {} and own.nodes() == []
