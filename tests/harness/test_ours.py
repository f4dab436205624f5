"""What Docker keeps for others is never counted, used or removed, whatever it is called."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from fencepost.harness.cluster import asking, compose, composefile, ours
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.engine import Engine
from fencepost.harness.errors import Crashed

FOREIGN = {"com.docker.compose.project": "fencepost", "com.docker.compose.service": "web"}


class Thing:
    """A container, network or volume of the Compose project `fencepost`."""

    def __init__(self, docker, name, labels, **attrs):
        self.docker, self.name, self.id, self.labels = docker, name, name, labels
        self.attrs = {"Labels": labels} | attrs

    def reload(self):
        pass

    def remove(self, **_):
        self.docker.things.remove(self)


class Docker:
    """An engine that keeps things, of which a list may be asked for each sort."""

    def __init__(self):
        self.things, self.composed = [], []
        for sort in ("container", "network", "volume"):
            listed = SimpleNamespace(list=lambda sort=sort, **_: self.of(sort))
            setattr(self, f"{sort}s", listed)

    def of(self, sort):
        return [thing for thing in self.things if thing.name.startswith(sort)]

    def add(self, name, labels, **attrs):
        self.things.append(Thing(self, name, labels, **attrs))

    def names(self):
        return sorted(thing.name for thing in self.things)

    def compose(self, argv, **_):
        self.composed.append(argv)
        return subprocess.CompletedProcess(argv, 0, "", "")


@pytest.fixture
def docker(monkeypatch):
    found = Docker()
    monkeypatch.setattr(asking, "client", lambda: found)
    monkeypatch.setattr(compose.images, "base", lambda name: "a base")
    monkeypatch.setattr(asking.subprocess, "run", found.compose)
    return found


@pytest.fixture
def cluster(docker):
    return ComposeCluster(Engine(("compose",), "20.10"))


def networks(address):
    return {"NetworkSettings": {"Networks": {"cluster": {"IPAddress": address}} if address else {}}}


@pytest.fixture
def both(docker):
    """A node of ours and its network, beside a foreign project with all that one can have."""
    mine = FOREIGN | ours.LABELS | {"com.docker.compose.service": "redis-1"}
    docker.add("container-ours", mine, **networks("10.0.0.1"))
    docker.add("network-ours", FOREIGN | ours.LABELS)
    # One on the host's network has no network of its own.
    docker.add("container-web", FOREIGN, **networks(""))
    docker.add("network-web", FOREIGN)
    docker.add("volume-web", FOREIGN)
    return docker


def test_every_container_and_network_that_is_created_has_our_label():
    file = composefile.json.loads(composefile.content())
    for thing in (*file["services"].values(), *file["networks"].values()):
        assert thing["labels"][ours.LABEL] == "fencepost"
    assert "volumes" not in file
    assert not any("volumes" in service for service in file["services"].values())


def test_a_foreign_project_of_our_name_is_not_counted_and_not_removed(both, cluster):
    assert cluster.look() == ["redis-1"]
    assert cluster.remains == []
    cluster.down()
    assert both.names() == ["container-web", "network-web", "volume-web"]
    # Compose goes by the project's name alone.
    assert both.composed == []


def test_what_is_left_without_a_node_that_is_up_is_named(both, cluster):
    assert cluster.remains == ["the stopped node redis-1"]
    both.things = [thing for thing in both.things if thing.name != "container-ours"]
    assert cluster.remains == ["the network network-ours"]


@pytest.mark.parametrize("name", ["container-web", "network-web", "volume-web"])
def test_no_node_is_started_beside_a_foreign_project_and_it_is_said_what_to_do(
    docker, cluster, name
):
    docker.add(name, FOREIGN, **networks(""))
    with pytest.raises(Crashed) as error:
        cluster.up(["redis-1"], "image")
    assert f"not fencepost's own, with the {name.partition('-')[0]} {name}" in str(error.value)
    assert "docker compose -p NAME" in str(error.value)
    assert docker.composed == []


def test_containers_of_an_older_version_are_ours(docker, cluster):
    labels = FOREIGN | {"fencepost.node": "true", "com.docker.compose.service": "redis-2"}
    docker.add("container-older", labels, **networks("10.0.0.2"))
    assert cluster.look() == ["redis-2"]
    cluster.down()
    assert docker.names() == []
