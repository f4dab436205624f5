"""What waits for another program gives up after a time limit, and says so."""

from __future__ import annotations

import subprocess
import time
from types import SimpleNamespace

import pytest

from fencepost.harness import process
from fencepost.harness.campaigns import dask_executor
from fencepost.harness.campaigns.item import Item
from fencepost.harness.cluster import image
from fencepost.harness.judge import judge_process
from fencepost.harness.servers import zookeeper


def forever(*_, out=None, **__):
    pipe = subprocess.PIPE
    return subprocess.Popen(["sleep", "600"], stdin=pipe, stdout=pipe, stderr=pipe)


def expired(command, **more):
    raise subprocess.TimeoutExpired(command, more["timeout"])


def test_a_judge_that_does_not_end_leaves_the_run_unknown_with_its_notes(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "begin", forever)
    monkeypatch.setattr(judge_process, "_LONGEST_S", 0.1)
    found = judge_process.Process(tmp_path, ["a note"], None).found()
    assert found["valid"] == "unknown"
    assert found["run_notes"][0] == "a note"
    assert "judging it took more than 0.1 s" in found["run_notes"][1]


def test_a_job_of_a_worker_that_does_not_end_fails_with_the_remedy(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(address="tcp://there"))
    monkeypatch.setattr(dask_executor.subprocess, "run", expired)
    done = dask_executor._do(Item("row", print, takes_s=60.0), "1")
    assert "the worker tcp://there was ended after 4200 s: run `fencepost heal`" in done.failure


@pytest.mark.parametrize("script", ["sleep 600", "printf latest; exec sleep 600"])
def test_a_registry_that_hangs_is_given_up(tmp_path, monkeypatch, script):
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\n{script}\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(image, "_REGISTRY_S", 2.0)
    monkeypatch.setattr(image, "_PULL_S", 0.1)
    began = time.monotonic()
    assert image._pull("a", lambda text: None) is False
    assert time.monotonic() - began < 300


def test_a_disk_that_hangs_has_no_identity(monkeypatch):
    monkeypatch.setattr(zookeeper.subprocess, "run", expired)
    with pytest.raises(OSError, match="did not answer within 10 s"):
        zookeeper._identity()
