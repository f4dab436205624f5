"""Compares the objects that Docker keeps of a test and its runs, before and after.

Other users of the engine start and remove containers at any time, also fencepost's own commands.
So a test names its objects. Those of a run have fencepost's labels, or are in the namespaces of
others of the test. Bystanders, which the test starts as well, stand for all other objects: a run
must leave them alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from docker import DockerClient
from docker.models.containers import Container

from fencepost.harness.cluster import docker_calls, labels, projects, reservation
from tests.cluster import own
from tests.cluster.bare import docker

_PROJECT = "com.docker.compose.project"
_BYSTANDER = f"fencepost-test-bystander-{os.getpid()}"


@contextmanager
def bystanders(image: str) -> Iterator[None]:
    """Let a container that runs, a network and a volume of another user be there."""
    docker("network", "create", _BYSTANDER)
    try:
        docker("volume", "create", _BYSTANDER)
        docker("run", "-d", "--name", _BYSTANDER, "-v", f"{_BYSTANDER}:/data", image)
        yield
    finally:
        docker("rm", "-f", _BYSTANDER, check=False)
        docker("volume", "rm", "-f", _BYSTANDER, check=False)
        docker("network", "rm", _BYSTANDER)


class Kept:
    """The present objects. `mine`: the names of the test's own containers, networks, volumes and
    Compose projects. Other commands' clusters do not count, now and in the end."""

    def __init__(self, *mine: str) -> None:
        self._mine = {*mine, _BYSTANDER}
        self._others = {*_in_use(), *projects.kept_clusters()}
        self._before = self._now()

    def containers(self, project: str) -> list[str]:
        """Return the containers of one of the Compose projects of the test."""
        with contextlib.closing(docker_calls.client()) as client:
            found = client.containers.list(filters={"label": f"{_PROJECT}={project}"})
            return sorted(str(one.name) for one in found)

    def changed(self) -> list[str]:
        """Return the objects that are gone or were added, with - or +."""
        others = _in_use()
        now = self._now()
        self._others |= others | _in_use()
        rows = [("-", row) for row in self._before - now] + [
            ("+", row) for row in now - self._before
        ]
        return sorted(f"{sign} {name}" for sign, (owner, name) in rows if owner not in self._others)

    def _now(self) -> set[tuple[str, str]]:
        """Return pairs of an object's cluster, or "" for the test's own, and its name."""
        with contextlib.closing(docker_calls.client()) as client:
            everything = client.containers.list(all=True, ignore_removed=True)
            found = {one.id: self._owner(one.labels, str(one.name)) for one in everything}
            for one in everything:
                if found[one.id] is None and not one.labels.get(labels.LABEL):
                    found[one.id] = _shared(one, found)
            rows = {(found[one.id], f"{one.id} {one.name}") for one in everything}
            return {(owner, row) for owner, row in rows | self._rest(client) if owner is not None}

    def _rest(self, client: DockerClient) -> set[tuple[str | None, str]]:
        """Return the same of networks and volumes."""
        return {
            (self._owner(one.attrs.get("Labels") or {}, str(one.name)), f"{one.id} {one.name}")
            for one in (*client.networks.list(), *client.volumes.list())
        }

    def _owner(self, marks: Mapping[str, Any], name: str) -> str | None:
        """Return the cluster, or "" for the test's own; None: it belongs to another program."""
        project = str(marks.get(_PROJECT, ""))
        if name in self._mine or project in self._mine:
            return ""
        # A Compose file that a run has started has a name of its own: fencepost-2-servers-1234abcd.
        cluster = project.partition("-servers-")[0]
        return cluster if cluster in own.clusters() else None


def _shared(one: Container, owners: Mapping[str, str | None]) -> str | None:
    """Return the owner of a container in whose namespaces another one is."""
    host = one.attrs["HostConfig"]
    modes = (str(host.get(name, "")) for name in ("NetworkMode", "PidMode", "IpcMode"))
    near = [mode.removeprefix("container:") for mode in modes]
    return next((owners[name] for name in near if owners.get(name) is not None), None)


def _in_use() -> set[str]:
    """Return the clusters that some command uses at this moment: none of the test's own does."""
    return {
        name for name in own.clusters()
        if any(reservation._holder(place / f"{name}.lock") for place in reservation.places())
    }  # fmt: skip
