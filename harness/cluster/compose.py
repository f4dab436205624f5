"""A cluster of containers, a Compose project: nodes up, down, and the Remote of each.

Each command has a cluster of its own, under one of a few project names (projects.py), so that the
next command finds what a killed run left behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from docker.models.containers import Container

from fencepost.harness.cluster import clientimage, containers, docker_calls, labels, network
from fencepost.harness.cluster import image as images
from fencepost.harness.cluster.cluster import Spawn
from fencepost.harness.cluster.detach import undo
from fencepost.harness.cluster.docker_calls import asked
from fencepost.harness.cluster.docker_engine import Engine
from fencepost.harness.cluster.project import brought_up
from fencepost.harness.cluster.services import service
from fencepost.harness.cluster.sidecar import is_helper, target_of
from fencepost.harness.remote.docker import DockerRemote
from fencepost.harness.remote.remote import Remote
from fencepost.harness.servers.external import ForeignServer

if TYPE_CHECKING:
    from fencepost.harness.cluster.ssh_keys import Doors


class ComposeCluster:
    """Whatever Docker refuses, or does not do in time, raises Crashed, with Docker's own message.

    `project`: the cluster's name among all of this machine. Docker gives its network a subnet that
    no other network and no route of the host has. With `doors`, sshd is started on each node, and
    the nodes are reached by SSH. `mounts`: see services.py. A node that is up with other rights
    than these is brought up again.
    """

    def __init__(
        self, engine: Engine, project: str, doors: Doors | None = None, mounts: bool = True
    ) -> None:
        self._project = project
        self._doors = doors
        self._mounts = mounts
        self._engine = engine
        self._image, self._base = images.REPOSITORY, "not looked at"
        self._client = docker_calls.client()
        self._remotes: dict[str, Remote] = {}
        self._containers: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._joined = ""
        self.undone: list[str] = []
        self.foreign: dict[str, ForeignServer] = {}

    @property
    def project(self) -> str:
        return self._project

    @property
    def nodes(self) -> list[str]:
        return list(self._addresses)

    @property
    def versions(self) -> dict[str, str]:
        by = {"remote": "ssh"} if self._doors else {}
        return {"docker": self._engine.version, "image": self._image, "base": self._base, **by}

    def up(self, nodes: Iterable[str], image: str) -> None:
        """Start these nodes from an image; those that are up stay as they are.

        Raises:
            Crashed: naming what somebody else has under the project's name; nothing was started.
        """
        self._image, self._base = image, images.base(image)
        labels.must_be_alone(self._client, self._project)
        sudo = self._doors is not None
        wanted = {node: service(node, image, self._mounts, sudo) for node in nodes}
        containers.bring_up(self._client, self._project, wanted, self._begin)
        self.look()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.remote, self.nodes))

    def _begin(self, node: str, container: str) -> None:
        """Let a node's agent start up while other nodes do."""
        if self._doors is None:
            if (before := self._remotes.get(node)) is not None:
                before.close()
            remote = DockerRemote(node, container)
            self._remotes[node], self._containers[node] = remote, container
            remote.begin()

    def look(self) -> list[str]:
        """Find the nodes that are up, even those of an earlier command; return their names."""
        self._addresses, found = {}, {}
        with asked("list its containers"):
            for container in labels.containers(self._client, self._project, all=False):
                if is_helper(container) or labels.PROGRAM_OF in container.labels:
                    continue
                node = _service(container)
                networks = container.attrs["NetworkSettings"]["Networks"]
                end: dict[str, str] = networks.get(self._joined) or next(
                    iter(networks.values()), {}
                )
                self._addresses[node] = end.get("IPAddress", "")
                found[node] = str(container.id)
        for node, remote in list(self._remotes.items()):
            # If the image has changed, the node has another container.
            if found.get(node) != self._containers[node]:
                remote.close()
                del self._remotes[node]
        self._containers = found
        return self.nodes

    def join(self, network: str) -> None:
        """Connect every node to a network that is not ours; by it they are reached from now on."""
        with (
            asked(f"connect our nodes to the network {network}"),
            ThreadPoolExecutor(containers.AT_ONCE) as pool,
        ):
            theirs = self._client.networks.get(network)
            list(pool.map(theirs.connect, self._containers.values()))
        self._joined = network
        self.look()

    def part(self) -> list[str]:
        """Undo `join`, and what was done to servers that are not ours, also by an earlier command;
        return what was, a sentence each. Our nodes stay up.

        Raises:
            Crashed: something could not be undone; all else is.
        """
        self._joined = ""
        with asked("disconnect our nodes from a network that is not ours"):
            own = {network.name for network in labels.networks(self._client, self._project)}
            for container in labels.containers(self._client, self._project):
                ends = container.attrs["NetworkSettings"]["Networks"]
                for network in [] if is_helper(container) else set(ends) - own:
                    self._client.networks.get(network).disconnect(str(container.id), force=True)
        self.look()
        return undo(self._client, self._project)

    def down(self) -> None:
        """Remove every node, its data and the network, even those of an earlier command. Undo first
        what was done to servers that are not ours.

        Not by Compose: it removes whatever has the project's name.

        Raises:
            NetworkLeft: every node is removed, but Docker cannot remove the network.
            Crashed: a node cannot be removed, or Docker does not say so; the text names the nodes
                that were up.
        """
        were = ", ".join(self.nodes) or "those of an earlier command"
        for remote in self._remotes.values():
            remote.close()
        self._remotes, self._containers, self._addresses = {}, {}, {}
        try:
            self.undone = undo(self._client, self._project)
        finally:
            with (
                asked(f"remove every node ({were})"),
                ThreadPoolExecutor(containers.AT_ONCE) as pool,
            ):
                every = labels.containers(self._client, self._project)
                list(pool.map(docker_calls.remove, [one for one in every if not is_helper(one)]))
            with asked("remove the nodes' network"):
                network.remove(self._client, self._project)

    @property
    def remains(self) -> list[str]:
        """What is there that is no node which is up: stopped nodes; networks where no node is."""
        with asked("list what it keeps"):
            every = labels.containers(self._client, self._project)
            stopped = [one for one in every if one.id not in self._containers.values()]
            found = [
                f"what was done beside {target_of(one.labels).name}"
                if is_helper(one)
                else f"the stopped node {_service(one)}"
                for one in stopped
            ]
            found += [f"the project {name}" for name in brought_up(self._client, self._project)]
            if every:
                return found
            of_it = labels.networks(self._client, self._project)
            return [*found, *(f"the network {one.name}" for one in of_it)]

    def remote(self, node: str) -> Remote:
        if node not in self._remotes:
            inside = DockerRemote(node, self._containers[node])
            self._remotes[node] = (
                self._doors.open(inside, self._addresses[node]) if self._doors else inside
            )
        return self._remotes[node]

    def in_image(self, node: str, image: str, archive: bytes) -> Spawn:
        place = clientimage.Place(node, self._containers[node], self._project)
        return clientimage.spawning(self._client, place, image, archive)

    def address(self, node: str) -> str:
        return self._addresses[node]


def _service(container: Container) -> str:
    served = container.labels.get(labels.PROGRAM_OF)
    if served is not None:
        return f"the program beside {served}"
    return labels.service_of(container)
