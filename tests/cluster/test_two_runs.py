"""Two runs on one machine at once have a cluster each, and neither touches the other's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import docker
import pytest

from fencepost.harness.cluster import labels
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
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for history in folder.glob("redis/*Z/history.jsonl"):
            if history.read_bytes().count(b"\n") >= 20:
                return history.parent
        time.sleep(0.1)
    raise AssertionError(f"nothing was recorded in {folder}")


def subnets(client: docker.DockerClient) -> dict[str, str]:
    found = {}
    for network in labels.networks(client):
        network.reload()
        project = network.attrs["Labels"]["com.docker.compose.project"]
        found[project] = network.attrs["IPAM"]["Config"][0]["Subnet"]
    return found


def test_two_runs_at_once_have_a_network_each_and_a_killed_one_is_removed_without_the_other(
    started, tmp_path
):
    client = docker.from_env()
    before = set(subnets(client))
    test = ("test", "redis", "--concurrency", "2", "--ttl", "500ms", "--seed", "7")
    living = started("living", *test, "--nemesis", "pause:server,partition@4s", "--time", "20s")
    run = recording(tmp_path / "living")
    doomed = started("doomed", *test, "--time", "60s")
    recording(tmp_path / "doomed")

    used = subnets(client)
    assert len(set(used) - before) == 2
    assert len(set(used.values())) == len(used)

    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    assert living.poll() is None, "it was over too early to show anything"
    healed = subprocess.run(
        [*FENCEPOST, "heal"], capture_output=True, text=True, check=True, timeout=120
    )
    assert "nodes that a run had left" in healed.stdout
    assert f"(pid {living.pid}) is using fencepost" in healed.stdout
    assert len(set(subnets(client)) - before) == 1

    out, _ = living.communicate(timeout=120)
    assert living.returncode == 0, out
    results = json.loads((run / "results.json").read_text())
    assert results["checkers"]["faults"]["valid"] is True and results["faults"]
    assert labels.projects(client) == set()
