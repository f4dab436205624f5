"""A cluster of containers by Docker Compose: nodes up, down, and the Remote of each.

A machine has one cluster, under one project name, so that the next command finds what a killed
run left behind. reservation.py keeps a second command out while the first one lives.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import docker
from docker.errors import DockerException

from fencepost.harness.cluster import composefile, network
from fencepost.harness.cluster.doors import Doors
from fencepost.harness.cluster.engine import Engine
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.docker import DockerRemote
from fencepost.harness.remote.remote import Remote

PROJECT = "fencepost"


class ComposeCluster:
    """Whatever Docker refuses raises Crashed, with Docker's own message.

    With `doors`, sshd is started on each node, and the nodes are reached by SSH.
    """

    def __init__(self, engine: Engine, doors: Doors | None = None) -> None:
        self._doors = doors
        self._engine = engine
        self._image = composefile.IMAGE
        self._client = docker.from_env()
        self._remotes: dict[str, Remote] = {}
        self._containers: dict[str, str] = {}
        self._addresses: dict[str, str] = {}

    @property
    def nodes(self) -> list[str]:
        return list(self._addresses)

    @property
    def versions(self) -> dict[str, str]:
        by = {"remote": "ssh"} if self._doors else {}
        return {"docker": self._engine.version, "image": self._image, **by}

    def up(self, nodes: Iterable[str], image: str) -> None:
        """Start these nodes from an image; those that are up stay as they are."""
        self._image = image
        self._compose("up", "-d", "--no-build", *nodes)
        self.look()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.remote, self.nodes))

    def look(self) -> list[str]:
        """Find the nodes that are up, even those of an earlier command; return their names."""
        self._addresses, found = {}, {}
        try:
            for container in self._client.containers.list(filters=_FILTER):
                node = container.labels["com.docker.compose.service"]
                networks = container.attrs["NetworkSettings"]["Networks"]
                self._addresses[node] = next(iter(networks.values()))["IPAddress"]
                found[node] = str(container.id)
        except DockerException as error:
            raise Crashed(f"Docker does not list its containers: {error}") from error
        for node, remote in list(self._remotes.items()):
            # If the image has changed, Compose replaces the node's container.
            if found.get(node) != self._containers[node]:
                remote.close()
                del self._remotes[node]
        self._containers = found
        return self.nodes

    def down(self) -> None:
        """Remove every node, its data and the network, even those of an earlier command.

        Raises:
            NetworkLeft: every node is removed, but Docker cannot remove the network.
        """
        for remote in self._remotes.values():
            remote.close()
        self._remotes, self._containers, self._addresses = {}, {}, {}
        try:
            self._compose("down", "-t", "0", "-v", "--remove-orphans")
        except Crashed as error:
            self._remove_network(error)

    def _remove_network(self, failed: Crashed) -> None:
        """Remove the network if only it is left; raise `failed` if a container is left too."""
        try:
            if self._client.containers.list(all=True, filters=_FILTER):
                raise failed
            network.remove(self._client, PROJECT)
        except DockerException:
            raise failed from None

    @property
    def networks(self) -> list[str]:
        """The names of the networks that are there, with or without a node."""
        try:
            return [str(found.name) for found in network.networks(self._client, PROJECT)]
        except DockerException as error:
            raise Crashed(f"Docker does not list its networks: {error}") from error

    def remote(self, node: str) -> Remote:
        if node not in self._remotes:
            inside = DockerRemote(node, self._containers[node])
            self._remotes[node] = (
                self._doors.open(inside, self._addresses[node]) if self._doors else inside
            )
        return self._remotes[node]

    def address(self, node: str) -> str:
        return self._addresses[node]

    def _compose(self, *arguments: str) -> None:
        done = subprocess.run(
            [*self._engine.compose, "-p", PROJECT, "-f", "-", *arguments],
            input=composefile.content(self._image),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
            raise Crashed(f"docker compose {' '.join(arguments[:2])} failed:\n{said}{_hint(said)}")


_FILTER: dict[str, str | list[str] | bool] = {"label": f"com.docker.compose.project={PROJECT}"}


def _hint(said: str) -> str:
    if "non-overlapping" in said or "address pool" in said.lower():
        return "\nEvery subnet Docker may use is taken: `docker network prune` removes unused ones."
    if "active endpoints" in said or "already exists in network" in said:
        return (
            "\nDocker keeps an endpoint whose container is gone: `fencepost heal` removes it, or "
            "says what else to do."
        )
    if "no space left" in said.lower():
        return "\nThe disk is full: `docker system df` shows what Docker keeps."
    return ""
