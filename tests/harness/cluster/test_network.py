"""The nodes' network, which Docker 20.10 may keep after all nodes were removed."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from docker.errors import APIError

from fencepost.harness.cluster import compose, docker_calls
from fencepost.harness.cluster import labels as ours
from fencepost.harness.cluster import provision as module
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.docker_engine import Engine
from fencepost.harness.cluster.network import NetworkLeft
from fencepost.harness.cluster.provision import brought_up
from fencepost.harness.command import app
from fencepost.harness.errors import Crashed

LABELS = ours.LABELS | {"com.docker.compose.project": "fencepost"}


class Docker:
    """An engine with a node's container and its network, which it removes when unused."""

    def __init__(self):
        self.stuck = False
        self.endpoints = {}
        self.stubborn = False
        self.there = True
        self.networks = self
        self.containers = SimpleNamespace(list=lambda **_: [Container(self)] * self.stuck)
        self.volumes = SimpleNamespace(list=lambda filters: [])

    def list(self, filters):
        return [Network(self)] if self.there else []

    def close(self):
        pass

    def bring_up(self, client, project, wanted, started):
        self.there = True


class Container:
    name, id, labels = "fencepost_redis-1_1", "c0ffee", LABELS

    def __init__(self, docker):
        self._docker = docker

    def remove(self, force, v):
        if self._docker.stuck:
            raise APIError("removal of container fencepost_redis-1_1 is already in progress")


class Network:
    name = "fencepost_cluster"

    def __init__(self, docker):
        self._docker = docker
        self.attrs = {"Labels": LABELS}

    def reload(self):
        self.attrs |= {"Containers": {id: {"Name": n} for id, n in self._docker.endpoints.items()}}

    def disconnect(self, name, force):
        if not force or self._docker.stubborn:
            raise APIError(f"endpoint {name} not found")
        self._docker.endpoints = {k: v for k, v in self._docker.endpoints.items() if v != name}

    def remove(self):
        if self._docker.endpoints:
            raise APIError("network has active endpoints")
        self._docker.there = False


@pytest.fixture
def docker(monkeypatch):
    found = Docker()
    monkeypatch.setattr(docker_calls, "client", lambda: found)
    monkeypatch.setattr(compose.images, "base", lambda name: "a base")
    monkeypatch.setattr(compose.containers, "bring_up", found.bring_up)
    monkeypatch.setattr(module.docker_engine, "ensure", lambda say: Engine("20.10"))
    monkeypatch.setattr(module.docker_engine, "find", lambda: Engine("20.10"))
    monkeypatch.setattr(module.image, "ensure", lambda say: "image")
    monkeypatch.setattr(module.image, "must_hold", lambda name, libraries: None)
    monkeypatch.setattr(ComposeCluster, "look", lambda self: [])
    return found


@pytest.fixture
def cluster(docker):
    return ComposeCluster(Engine("20.10"), "fencepost")


def test_an_endpoint_without_a_container_is_disconnected_and_the_network_removed(docker, cluster):
    docker.endpoints = {"ep-17": "fencepost_redis-1_1"}
    cluster.down()
    assert not docker.there


def test_a_network_that_stays_is_named_with_a_remedy(docker, cluster):
    docker.endpoints, docker.stubborn = {"ep-17": "fencepost_redis-1_1"}, True
    with pytest.raises(NetworkLeft) as error:
        cluster.down()
    said = str(error.value)
    assert "not their network fencepost_cluster" in said
    assert "systemctl restart docker" in said and "fencepost heal" in said


def test_down_fails_with_docker_s_error_if_a_container_remains(docker, cluster):
    docker.endpoints, docker.stuck = {"ep-17": "fencepost_redis-1_1"}, True
    with pytest.raises(Crashed, match="is already in progress") as error:
        cluster.down()
    assert not isinstance(error.value, NetworkLeft)
    assert docker.endpoints and docker.there


def test_a_run_keeps_its_own_outcome_if_only_the_network_remains(docker, capsys):
    docker.endpoints, docker.stubborn = {"ep-17": "fencepost_redis-1_1"}, True
    with brought_up(["redis-1"], print):
        pass
    assert "fencepost: warning: every node is removed, but not" in capsys.readouterr().err
    with pytest.raises(KeyError, match="its own"), brought_up(["redis-1"], print):
        raise KeyError("its own")


@pytest.fixture
def run(docker, monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fencepost", *arguments])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def test_heal_names_a_network_that_was_left_and_removes_it(docker, run):
    docker.endpoints = {"ep-17": "fencepost_redis-1_1"}
    code, said = run("heal", "--check")
    assert (code, said) == (1, "the network fencepost_cluster: a run left it\n")
    code, said = run("heal")
    assert code == 0
    assert "Removed the network fencepost_cluster" in said
    assert run("heal", "--check")[0] == 0


def test_heal_gives_a_remedy_for_a_network_that_it_cannot_remove(docker, run):
    docker.endpoints, docker.stubborn = {"ep-17": "fencepost_redis-1_1"}, True
    code, said = run("heal")
    assert code == 255
    assert "network fencepost_cluster" in said and "Restart the Docker daemon" in said
