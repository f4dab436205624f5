"""Manages a cluster of containers, which form a Compose project.

Each command has its own cluster, under one of a few project names (projects.py), so that the next
command finds the containers that a killed run left.
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
from fencepost.harness.cluster.docker_calls import request
from fencepost.harness.cluster.docker_engine import Engine
from fencepost.harness.cluster.project import brought_up
from fencepost.harness.cluster.services import service
from fencepost.harness.cluster.sidecar import is_sidecar, target_of
from fencepost.harness.remote.docker import DockerRemote
from fencepost.harness.remote.remote import Remote
from fencepost.harness.servers.external import ForeignServer

if TYPE_CHECKING:
    from fencepost.harness.cluster.ssh_keys import Doors


class ComposeCluster:
    """A cluster of containers. An error or a timeout of Docker raises Crashed with its message.

    `project`: the unique name of the cluster on this machine. Docker gives its network a subnet
    that no other network and no route of the host uses. With `doors`, each node runs sshd and is
    reached by SSH. `mounts`: see services.py. A running node with other rights than these is
    replaced.
    """

    def __init__(
        self, engine: Engine, project: str, doors: Doors | None = None, mounts: bool = True
    ) -> None:
        self.project = project
        self._doors = doors
        self._mounts = mounts
        self._engine = engine
        self._image, self._base = images.REPOSITORY, "unknown"
        self._client = docker_calls.client()
        self._remotes: dict[str, Remote] = {}
        self._containers: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._joined = ""
        self.undone: list[str] = []
        self.foreign: dict[str, ForeignServer] = {}

    @property
    def nodes(self) -> list[str]:
        return list(self._addresses)

    @property
    def versions(self) -> dict[str, str]:
        by = {"remote": "ssh"} if self._doors else {}
        return {"docker": self._engine.version, "image": self._image, "base": self._base, **by}

    def up(self, nodes: Iterable[str], image: str) -> None:
        """Start these nodes from an image; those that run already are not changed.

        Raises:
            Crashed: the project's name is used by another program; nothing was started.
        """
        self._image, self._base = image, images.base(image)
        labels.must_be_alone(self._client, self.project)
        sudo = self._doors is not None
        wanted = {node: service(node, image, self._mounts, sudo) for node in nodes}
        containers.bring_up(self._client, self.project, wanted, self._begin)
        self.look()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.remote, self.nodes))

    def _begin(self, node: str, container: str) -> None:
        """Start a node's agent while other nodes start."""
        if self._doors is None:
            if (before := self._remotes.get(node)) is not None:
                before.close()
            remote = DockerRemote(node, container)
            self._remotes[node], self._containers[node] = remote, container
            remote.begin()

    def look(self) -> list[str]:
        """Find the running nodes, also those of an earlier command; return their names."""
        self._addresses, found = {}, {}
        with request("list its containers"):
            for container in labels.containers(self._client, self.project, all=False):
                if is_sidecar(container) or labels.PROGRAM_OF in container.labels:
                    continue
                node = _service(container)
                networks = container.attrs["NetworkSettings"]["Networks"]
                end: dict[str, str] = networks.get(self._joined) or next(
                    iter(networks.values()), {}
                )
                self._addresses[node] = end.get("IPAddress", "")
                found[node] = str(container.id)
        for node, remote in list(self._remotes.items()):
            # After a change of the image, the node has a new container.
            if found.get(node) != self._containers[node]:
                remote.close()
                del self._remotes[node]
        self._containers = found
        return self.nodes

    def join(self, network: str) -> None:
        """Connect every node to an external network, through which other nodes reach it then."""
        with (
            request(f"connect the nodes to the network {network}"),
            ThreadPoolExecutor(containers.AT_ONCE) as pool,
        ):
            theirs = self._client.networks.get(network)
            list(pool.map(theirs.connect, self._containers.values()))
        self._joined = network
        self.look()

    def part(self) -> list[str]:
        """Undo `join` and all changes to external servers, also those of an earlier command.

        Return a sentence for each change that was undone. The nodes keep running.

        Raises:
            Crashed: some changes could not be undone; all others were.
        """
        self._joined = ""
        with request("disconnect the nodes from an external network"):
            own = {network.name for network in labels.networks(self._client, self.project)}
            for container in labels.containers(self._client, self.project):
                ends = container.attrs["NetworkSettings"]["Networks"]
                for network in [] if is_sidecar(container) else set(ends) - own:
                    self._client.networks.get(network).disconnect(str(container.id), force=True)
        self.look()
        return undo(self._client, self.project)

    def down(self) -> None:
        """Remove every node, its data and the network, also those of an earlier command.

        First undo all changes to external servers. Compose is not used, because it would remove
        everything with the project's name.

        Raises:
            NetworkLeft: every node is removed, but Docker cannot remove the network.
            Crashed: Docker did not confirm the removal of all nodes; the text names them.
        """
        were = ", ".join(self.nodes) or "those of an earlier command"
        for remote in self._remotes.values():
            remote.close()
        self._remotes, self._containers, self._addresses = {}, {}, {}
        try:
            self.undone = undo(self._client, self.project)
        finally:
            with (
                request(f"remove every node ({were})"),
                ThreadPoolExecutor(containers.AT_ONCE) as pool,
            ):
                every = labels.containers(self._client, self.project)
                list(pool.map(docker_calls.remove, [one for one in every if not is_sidecar(one)]))
            with request("remove the nodes' network"):
                network.remove(self._client, self.project)

    @property
    def remains(self) -> list[str]:
        """Return what Docker has of the cluster except running nodes: stopped nodes, networks."""
        with request("list its containers and networks"):
            every = labels.containers(self._client, self.project)
            stopped = [one for one in every if one.id not in self._containers.values()]
            found = [
                f"the sidecar of {target_of(one.labels).name}"
                if is_sidecar(one)
                else f"the stopped node {_service(one)}"
                for one in stopped
            ]
            found += [f"the project {name}" for name in brought_up(self._client, self.project)]
            if every:
                return found
            of_it = labels.networks(self._client, self.project)
            return [*found, *(f"the network {one.name}" for one in of_it)]

    def remote(self, node: str) -> Remote:
        if node not in self._remotes:
            inside = DockerRemote(node, self._containers[node])
            self._remotes[node] = (
                self._doors.open(inside, self._addresses[node]) if self._doors else inside
            )
        return self._remotes[node]

    def in_image(self, node: str, image: str, archive: bytes) -> Spawn:
        place = clientimage.Place(node, self._containers[node], self.project)
        return clientimage.spawning(self._client, place, image, archive)

    def address(self, node: str) -> str:
        return self._addresses[node]


def _service(container: Container) -> str:
    served = container.labels.get(labels.PROGRAM_OF)
    if served is not None:
        return f"the client program of {served}"
    return labels.service_of(container)
