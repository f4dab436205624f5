"""The engine's SDK starts the nodes' containers, with an engine in memory."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from docker.errors import APIError

from fencepost.harness.cluster import labels
from fencepost.harness.cluster.containers import bring_up
from fencepost.harness.cluster.docker_calls import Refused
from fencepost.harness.cluster.services import service

PROJECT = "fencepost"


class Container:
    def __init__(self, docker, image, settings):
        self.docker, self.settings = docker, settings
        self.name, self.labels = settings["name"], settings["labels"]
        self.id, self.status = f"id-{self.name}", "created"
        self.attrs = {"Image": docker.ids[image]}

    def start(self):
        if self.name in self.docker.refused:
            raise APIError(self.docker.refused[self.name])
        self.status = "running"
        self.docker.started.append(self.name)

    def remove(self, force, v):
        self.docker.there.remove(self)


class Docker:
    """An engine that keeps containers and networks; it calls `before` before it creates one."""

    def __init__(self):
        self.there, self.started, self.refused, self.made = [], [], {}, []
        self.ids = {"an-image": "sha256:1"}
        self.before = lambda name: None
        self.images = SimpleNamespace(get=lambda name: SimpleNamespace(id=self.ids[name]))
        self.networks = SimpleNamespace(list=lambda filters: self.made, create=self._network)
        self.containers = SimpleNamespace(
            list=lambda all, filters, ignore_removed: list(self.there), create=self._create
        )
        self.api = SimpleNamespace(create_endpoint_config=lambda aliases: {"Aliases": aliases})

    def _network(self, name, **settings):
        found = SimpleNamespace(name=name, settings=settings, attrs={"Labels": settings["labels"]})
        self.made.append(found)
        return found

    def _create(self, image, command, **settings):
        self.before(settings["name"])
        made = Container(self, image, {"command": command, **settings})
        self.there.append(made)
        return made

    def names(self):
        return sorted(one.name for one in self.there)


@pytest.fixture
def docker():
    return Docker()


def wanted(*nodes, **asked):
    return {node: service(node, "an-image", **asked) for node in nodes}


def test_each_node_is_reported_with_its_container_once_it_has_started(docker):
    told = []
    bring_up(
        docker, PROJECT, wanted("redis-1"), lambda *one: told.append((*one, docker.started[:]))
    )
    bring_up(docker, PROJECT, wanted("redis-1", "client-1"), lambda *one: told.append(one))
    redis, client = "fencepost-redis-1-1", "fencepost-client-1-1"
    # A container that ran before was not started.
    assert told == [("redis-1", f"id-{redis}", [redis]), ("client-1", f"id-{client}")]


def test_each_node_runs_once_on_an_internal_network(docker):
    bring_up(docker, PROJECT, wanted("redis-1", "client-1"))
    assert docker.names() == ["fencepost-client-1-1", "fencepost-redis-1-1"]
    assert all(one.status == "running" for one in docker.there)
    (network,) = docker.made
    assert network.name == "fencepost_cluster" and network.settings["internal"] is True
    redis = next(one for one in docker.there if "redis" in one.name).settings
    assert redis["command"] == ["redis"] and redis["hostname"] == "redis-1"
    assert redis["networking_config"] == {"fencepost_cluster": {"Aliases": ["redis-1"]}}
    assert redis["pids_limit"] and redis["mem_limit"]
    assert not {"ports", "privileged", "volumes", "healthcheck"} & set(redis)


def test_every_created_container_and_network_has_fencepost_s_label_and_its_node_s(docker):
    bring_up(docker, PROJECT, wanted("redis-1"))
    assert labels.networks(docker, PROJECT) == docker.made
    (node,) = labels.containers(docker, PROJECT)
    assert labels.service_of(node) == "redis-1"
    assert docker.made[0].attrs["Labels"]["com.docker.compose.project"] == PROJECT


def test_nodes_that_are_up_stay_as_they_are(docker):
    bring_up(docker, PROJECT, wanted("redis-1"))
    (before,) = docker.there
    bring_up(docker, PROJECT, wanted("redis-1", "client-1"))
    assert before in docker.there and len(docker.there) == 2 and len(docker.made) == 1
    assert docker.started.count(before.name) == 1


def test_a_node_that_has_stopped_is_started_again(docker):
    bring_up(docker, PROJECT, wanted("redis-1"))
    docker.there[0].status = "exited"
    bring_up(docker, PROJECT, wanted("redis-1"))
    assert docker.there[0].status == "running" and len(docker.there) == 1


@pytest.mark.parametrize("change", ["rights", "image"])
def test_a_node_with_other_rights_or_of_another_image_is_replaced(docker, change):
    bring_up(docker, PROJECT, wanted("redis-1", mounts=False))
    (before,) = docker.there
    if change == "image":
        docker.ids["an-image"] = "sha256:2"
    bring_up(docker, PROJECT, wanted("redis-1", mounts=change == "rights"))
    (after,) = docker.there
    assert after is not before and after.status == "running"


def test_docker_s_error_is_reported_with_a_remedy(docker):
    docker.refused = {"fencepost-redis-1-1": "could not find an available, non-overlapping IPv4"}
    with pytest.raises(Refused, match=r"start the node redis-1: .*\n.*docker network prune"):
        bring_up(docker, PROJECT, wanted("redis-1"))


def test_after_a_failure_nothing_is_started_any_more(docker):
    docker.refused = {"fencepost-client-1-1": "no space left on device"}
    late, failed = threading.Event(), threading.Event()

    def before(name):
        # The others are in progress when the first one fails, and no second batch starts.
        if name == "fencepost-client-1-1":
            failed.set()
        else:
            failed.wait(120)
            late.wait(0.05)

    docker.before = before
    nodes = [f"client-{n}" for n in range(1, 11)] + [f"redis-{n}" for n in range(1, 6)]
    with pytest.raises(Refused, match="The disk is full"):
        bring_up(docker, PROJECT, wanted(*nodes))
    begun = docker.names()
    assert len(begun) < len(nodes)
    late.wait(0.2)
    assert docker.names() == begun


def test_an_interrupt_leaves_nothing_that_is_still_being_started(docker, monkeypatch):
    from fencepost.harness.cluster import containers

    def interrupted(tasks, return_when):
        raise KeyboardInterrupt

    monkeypatch.setattr(containers, "wait", interrupted)
    slow = threading.Event()
    docker.before = lambda name: slow.wait(0.1)
    with pytest.raises(KeyboardInterrupt):
        bring_up(docker, PROJECT, wanted(*[f"client-{n}" for n in range(1, 11)]))
    begun = docker.names()
    slow.wait(0.3)
    assert docker.names() == begun
