"""A cluster of containers by Docker Compose: nodes up, down, and the Remote of each.

A machine has one cluster, under one project name, so that the next command finds what a killed
run left behind. reservation.py keeps a second command out while the first one lives.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from docker.errors import NotFound
from docker.models.containers import Container

from fencepost.harness.cluster import asking, composefile, network, ours
from fencepost.harness.cluster import image as images
from fencepost.harness.cluster.doors import Doors
from fencepost.harness.cluster.engine import Engine
from fencepost.harness.cluster.ours import PROJECT
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.docker import DockerRemote
from fencepost.harness.remote.remote import Remote

# On a busy machine all nodes take a minute to come up.
_UP_S = 300.0


class ComposeCluster:
    """Whatever Docker refuses, or does not do in time, raises Crashed, with Docker's own message.

    With `doors`, sshd is started on each node, and the nodes are reached by SSH. `mounts`: see
    composefile.py. A node that is up with other rights than these is brought up again.
    """

    def __init__(self, engine: Engine, doors: Doors | None = None, mounts: bool = True) -> None:
        self._doors = doors
        self._mounts = mounts
        self._engine = engine
        self._image, self._base = composefile.IMAGE, "not looked at"
        self._client = asking.client()
        self._remotes: dict[str, Remote] = {}
        self._containers: dict[str, str] = {}
        self._addresses: dict[str, str] = {}

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
        ours.must_be_alone(self._client)
        self._compose("up", "-d", "--no-build", *nodes)
        self.look()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.remote, self.nodes))

    def look(self) -> list[str]:
        """Find the nodes that are up, even those of an earlier command; return their names."""
        self._addresses, found = {}, {}
        with asking.asked("list its containers"):
            for container in ours.containers(self._client, all=False):
                node = _service(container)
                networks = container.attrs["NetworkSettings"]["Networks"].values()
                self._addresses[node] = next((one["IPAddress"] for one in networks), "")
                found[node] = str(container.id)
        for node, remote in list(self._remotes.items()):
            # If the image has changed, Compose replaces the node's container.
            if found.get(node) != self._containers[node]:
                remote.close()
                del self._remotes[node]
        self._containers = found
        return self.nodes

    def down(self) -> None:
        """Remove every node, its data and the network, even those of an earlier command.

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
        with asking.asked(f"remove every node ({were})"), ThreadPoolExecutor(8) as pool:
            list(pool.map(_remove, ours.containers(self._client)))
        with asking.asked("remove the nodes' network"):
            network.remove(self._client)

    @property
    def remains(self) -> list[str]:
        """What is there that is no node which is up: stopped nodes; networks where no node is."""
        with asking.asked("list what it keeps"):
            every = ours.containers(self._client)
            stopped = [one for one in every if one.id not in self._containers.values()]
            found = [f"the stopped node {_service(one)}" for one in stopped]
            if every:
                return found
            return [f"the network {one.name}" for one in ours.networks(self._client)]

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
        done = asking.command(
            [*self._engine.compose, "-p", PROJECT, "-f", "-", *arguments],
            _UP_S,
            input=composefile.content(self._image, self._mounts, sudo=self._doors is not None),
            # Ctrl-C is for this command, which removes the nodes then.
            start_new_session=True,
        )
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
            raise Crashed(f"docker compose {' '.join(arguments[:2])} failed:\n{said}{_hint(said)}")


def _service(container: Container) -> str:
    return str(container.labels["com.docker.compose.service"])


def _remove(container: Container) -> None:
    """Remove a container, and its volumes that have no name."""
    with suppress(NotFound):  # somebody was quicker
        container.remove(force=True, v=True)


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
