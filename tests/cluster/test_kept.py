"""An object that a run has left or removed is seen, and those of other programs are not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fencepost.harness.cluster import image, labels
from fencepost.harness.cluster.reservation import Reservation
from tests.cluster import own
from tests.cluster.bare import docker
from tests.cluster.kept import Kept, bystanders

MINE = "kept-mine"
_HOLDS = """
import sys
from fencepost.harness.cluster.reservation import Reservation

held = Reservation(sys.argv[1])
held.take()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def nodes() -> str:
    return image.ensure(print)


@pytest.fixture(scope="module", autouse=True)
def others(nodes: str) -> Iterator[None]:
    with bystanders(nodes):
        yield


@contextmanager
def container(nodes: str, name: str, *words: str) -> Iterator[str]:
    docker("create", "--name", name, *words, nodes)
    try:
        yield name
    finally:
        docker("rm", "-f", name, check=False)


@contextmanager
def in_use(cluster: str) -> Iterator[None]:
    """Let another command use a cluster."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", _HOLDS, cluster], text=True, **pipes) as command:  # type: ignore[call-overload]
        assert command.stdout.readline() == "held\n"
        yield
        command.stdin.close()


@pytest.fixture
def cluster() -> str:
    """A cluster that this worker's commands may take, and that no command uses."""
    for name in sorted(own.clusters(), reverse=True):
        reservation = Reservation(name)
        reservation.take()
        reservation.release()
        if not reservation.keep:
            return name
    raise AssertionError("no cluster is free")


def marks(cluster: str) -> list[str]:
    found = labels.labels(cluster, "redis-1").items()
    return [word for name, value in found for word in ("--label", f"{name}={value}")]


def names(changed: list[str]) -> list[str]:
    return [f"{row[0]} {row.split()[-1]}" for row in changed]


def test_what_other_programs_start_and_remove_does_not_count(nodes, cluster):
    with container(nodes, "kept-other-1"):
        before = Kept()
    with container(nodes, "kept-other-2"), in_use(cluster):
        docker("network", "create", "kept-other")
        try:
            with container(nodes, "kept-other-3", *marks(cluster)):
                assert before.changed() == []
        finally:
            docker("network", "rm", "kept-other")


def test_what_a_run_left_is_seen(nodes, cluster):
    with container(nodes, MINE):
        before = Kept(MINE)
        with container(nodes, "kept-left", *marks(cluster)):
            assert names(before.changed()) == ["+ kept-left"]
        with container(nodes, "kept-near", "--network", f"container:{MINE}"):
            assert names(before.changed()) == ["+ kept-near"]
        project = f"com.docker.compose.project={cluster}-servers-1234abcd"
        with container(nodes, "kept-server", "--label", project):
            assert names(before.changed()) == ["+ kept-server"]
        docker("network", "create", "--label", f"com.docker.compose.project={cluster}", "kept-net")
        try:
            assert names(before.changed()) == ["+ kept-net"]
        finally:
            docker("network", "rm", "kept-net")
        assert before.changed() == []


def test_what_a_run_removed_is_seen(nodes):
    with container(nodes, MINE), volume() as left:
        before = Kept(MINE, left)
        docker("rm", "-f", MINE)
        assert names(before.changed()) == [f"- {MINE}"]
        docker("volume", "rm", left)
        assert set(names(before.changed())) == {f"- {MINE}", f"- {left}"}


@contextmanager
def volume() -> Iterator[str]:
    docker("volume", "create", "kept-volume")
    try:
        yield "kept-volume"
    finally:
        docker("volume", "rm", "-f", "kept-volume", check=False)
