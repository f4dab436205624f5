"""Docker objects of other projects are never counted, used or removed, whatever their names."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from docker.errors import APIError, NotFound

from fencepost.harness.cluster import compose, docker_calls, provision
from fencepost.harness.cluster import labels as ours
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.docker_engine import Engine
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
    """An engine that keeps objects and lists them by kind."""

    def __init__(self):
        self.things, self.brought_up = [], []
        for sort in ("container", "network", "volume"):
            listed = SimpleNamespace(list=lambda sort=sort, **asked: self.of(sort, asked))
            setattr(self, f"{sort}s", listed)

    def of(self, sort, asked):
        label, _, value = asked["filters"]["label"].partition("=")
        of_sort = [thing for thing in self.things if thing.name.startswith(sort)]
        return [
            thing
            for thing in of_sort
            if label in thing.labels and value in ("", thing.labels[label])
        ]

    def close(self):
        pass

    def add(self, name, labels, **attrs):
        self.things.append(Thing(self, name, labels, **attrs))

    def names(self):
        return sorted(thing.name for thing in self.things)

    def bring_up(self, client, project, wanted, started):
        self.brought_up.append((project, *wanted))


@pytest.fixture
def docker(monkeypatch):
    found = Docker()
    monkeypatch.setattr(docker_calls, "client", lambda: found)
    monkeypatch.setattr(compose.images, "base", lambda name: "a base")
    monkeypatch.setattr(compose.containers, "bring_up", found.bring_up)
    return found


@pytest.fixture
def cluster(docker):
    return ComposeCluster(Engine("20.10"), "fencepost")


def networks(address):
    return {"NetworkSettings": {"Networks": {"cluster": {"IPAddress": address}} if address else {}}}


@pytest.fixture
def both(docker):
    """A node of fencepost with its network, and another project with every kind of object."""
    mine = FOREIGN | ours.LABELS | {"com.docker.compose.service": "redis-1"}
    docker.add("container-ours", mine, **networks("10.0.0.1"))
    docker.add("network-ours", FOREIGN | ours.LABELS)
    # A container on the host's network has no network of its own.
    docker.add("container-web", FOREIGN, **networks(""))
    docker.add("network-web", FOREIGN)
    docker.add("volume-web", FOREIGN)
    return docker


def test_another_project_of_the_same_name_is_not_counted_and_not_removed(both, cluster):
    assert cluster.look() == ["redis-1"]
    assert cluster.remains == []
    cluster.down()
    assert both.names() == ["container-web", "network-web", "volume-web"]


def test_leftovers_without_a_running_node_are_named(both, cluster):
    assert cluster.remains == ["the stopped node redis-1"]
    both.things = [thing for thing in both.things if thing.name != "container-ours"]
    assert cluster.remains == ["the network network-ours"]


@pytest.mark.parametrize("name", ["container-web", "network-web", "volume-web"])
def test_no_node_starts_next_to_another_project_of_that_name_and_the_error_gives_a_remedy(
    docker, cluster, name
):
    docker.add(name, FOREIGN, **networks(""))
    with pytest.raises(Crashed) as error:
        cluster.up(["redis-1"], "image")
    assert f"the name 'fencepost', with the {name.partition('-')[0]} {name}" in str(error.value)
    assert "docker compose -p NAME" in str(error.value)
    assert docker.brought_up == []


def test_objects_of_another_fencepost_cluster_are_left_alone(both, cluster):
    second = {"com.docker.compose.project": "fencepost-2"} | ours.LABELS
    named = second | {"com.docker.compose.service": "redis-1"}
    both.add("container-second", named, **networks("10.0.1.1"))
    both.add("network-second", second)
    assert provision.there() == ["fencepost", "fencepost-2"]
    assert cluster.look() == ["redis-1"] and cluster.address("redis-1") == "10.0.0.1"
    cluster.down()
    left = {"container-second", "network-second", "container-web", "network-web", "volume-web"}
    assert set(both.names()) == left
    assert provision.there() == ["fencepost-2"]


def test_each_cluster_starts_under_its_own_name(docker):
    for name in ("fencepost", "fencepost-2"):
        ComposeCluster(Engine("20.10"), name).up(["redis-1"], "image")
    assert docker.brought_up == [("fencepost", "redis-1"), ("fencepost-2", "redis-1")]


def test_containers_of_an_older_version_are_recognized(docker, cluster):
    labels = FOREIGN | {"fencepost.node": "true", "com.docker.compose.service": "redis-2"}
    docker.add("container-older", labels, **networks("10.0.0.2"))
    assert cluster.look() == ["redis-2"]
    cluster.down()
    assert docker.names() == []


class Leaving:
    """A container that another process removes; `answers` are the engine's, the last one stays."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), 0

    def remove(self, force, v):
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            raise answer


def refusal(status, why):
    return APIError(why, SimpleNamespace(status_code=status, reason=why, url=""), why)


UNDER_WAY = refusal(409, "removal of container abc is already in progress")


@pytest.mark.parametrize("over", [None, NotFound("it is gone")])
def test_a_container_that_is_being_removed_is_waited_for(monkeypatch, over):
    monkeypatch.setattr(docker_calls, "_LOOK_S", 0)
    leaving = Leaving(UNDER_WAY, UNDER_WAY, over)
    docker_calls.remove(leaving)
    assert leaving.asked == 3


def test_a_container_that_does_not_go_and_one_that_may_not_are_reported(monkeypatch):
    monkeypatch.setattr(docker_calls, "_LOOK_S", 0)
    monkeypatch.setattr(docker_calls, "CALL_S", 0.05)
    stays = Leaving(UNDER_WAY)
    with pytest.raises(APIError, match="already in progress"):
        docker_calls.remove(stays)
    assert stays.asked > 1
    for why in (refusal(409, "it is paused"), refusal(500, "already in progress")):
        once = Leaving(why)
        with pytest.raises(APIError):
            docker_calls.remove(once)
        assert once.asked == 1
