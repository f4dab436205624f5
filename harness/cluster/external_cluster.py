"""Manages a cluster with external servers: fencepost's clients and store join their network.

Each server has a sidecar (sidecar.py), which is its node in the test. Clients reach a server by its
name, as the user's programs do. A restarted container may have a new address, which is then written
into the clients' /etc/hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from docker import DockerClient

from fencepost.harness.cluster import nodecode
from fencepost.harness.cluster.cluster import Spawn
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.docker_engine import Say
from fencepost.harness.cluster.external import common_network, describe, target
from fencepost.harness.cluster.project import Project
from fencepost.harness.cluster.sidecar import Sidecar, Target, sidecars
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.remote.remote import Remote
from fencepost.harness.remote.sidecar import SidecarRemote
from fencepost.harness.servers.external import ForeignServer
from fencepost.harness.servers.external_names import Foreign, Named
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.servers.wait import START_S, until
from fencepost.nemesis.iptables import connect
from fencepost.node.kind import Kind
from fencepost.node.places import HOME, PROGRAM

# How long a running server may take to answer as its kind does. It was started long before.
_ANSWER_S = 10.0

Check = Callable[[Mapping[str, ForeignServer]], None]
"""Raises BadArguments if these servers cannot have a fault that the test injects."""


class ExternalCluster:
    """A cluster with external servers. An error of the engine raises Crashed; `down` cleans up.

    `own`: the cluster of clients and store. `compose`: the command that calls Compose, if the
    servers are services of a Compose file.
    """

    def __init__(
        self,
        own: ComposeCluster,
        client: DockerClient,
        foreign: Foreign,
        say: Say,
        check: Check,
        compose: tuple[str, ...] = (),
    ) -> None:
        self._own = own
        self._client = client
        self._compose = compose
        self._asked = foreign
        self._say = say
        self._check = check
        self._sidecars: dict[str, Sidecar] = {}
        self._remotes: dict[str, SidecarRemote] = {}
        self._addresses: dict[str, str] = {}
        self.foreign: dict[str, ForeignServer] = {}

    @property
    def nodes(self) -> list[str]:
        return [*self._sidecars, *self._own.nodes]

    @property
    def versions(self) -> dict[str, str]:
        targets = {one.node: self._sidecars[one.node].target for one in self._asked.servers}
        return self._own.versions | {"containers": describe(targets)}

    def up(self, nodes: Iterable[str], image: str) -> None:
        """Find the servers, start a sidecar for each, and start the nodes in their network.

        Raises:
            BadArguments: a server does not exist, cannot be reached, or cannot have a fault that
                the test injects.
        """
        servers = {one.node: one for one in self._asked.servers}
        containers, stays = self._containers(list(servers))
        targets = self._targets(servers, containers)
        with ThreadPoolExecutor(8) as pool:
            placed = [pool.submit(self._place, image, one) for one in targets]
        for one in placed:
            one.result()
        for node, server in servers.items():
            self._identify(node, server.kind, stays)
        self._check(self.foreign)
        wanted = list(nodes)
        self._say(f"Bringing up {len(wanted)} nodes in their network")
        self._own.up(wanted, image)
        self._own.join(targets[0].network)
        self._name()
        self._must_reach()

    def _containers(self, services: list[str]) -> tuple[dict[str, str], bool]:
        if self._asked.compose is None:
            return {name: name for name in services}, True
        project = Project(self._compose, self._asked.compose, self._own.project, self._client)
        return project.containers(services, self._say)

    def _targets(self, servers: Mapping[str, Named], containers: Mapping[str, str]) -> list[Target]:
        found = [target(self._client, one, containers[node]) for node, one in servers.items()]
        ids = {one.container: one.node for one in found}
        for one in found:
            if ids[one.container] != one.node:
                raise BadArguments(
                    f"{one.node} and {ids[one.container]} name the same container: name it once"
                )
        for other in sidecars(self._client):
            if other.target.container in ids:
                raise Crashed(
                    f"another fencepost command is testing the container {other.target.name}: "
                    "wait for it to end"
                )
        network = common_network(self._client, found)
        return [replace(one, network=network) for one in found]

    def _place(self, image: str, target: Target) -> None:
        sidecar = Sidecar.place(self._client, self._own.project, image, target)
        sidecar.started = lambda: self._moved(target.node)
        self._sidecars[target.node] = sidecar
        self._remotes[target.node] = SidecarRemote(target.node, sidecar.beside)
        self._addresses[target.node] = sidecar.address()

    def _identify(self, node: str, kind: Kind | None, stays: bool) -> None:
        """Determine which faults and which queries of its kind a server supports."""
        remote, sidecar = self._remotes[node], self._sidecars[node]
        rules = remote.run(["iptables", "-w", "-S"], check=False)
        if rules.code:
            raise Crashed(
                f"{node}: a sidecar cannot read the iptables rules of its network "
                f"({rules.err.strip()}): let the engine grant NET_ADMIN"
            )
        if kind is not None and kind.name not in KINDS:
            self._ship(remote, kind)
        port = int(sidecar.target.port)
        server = ForeignServer(remote, sidecar, None, port, stays)
        if not until(server.ready, START_S if not stays else _ANSWER_S):
            raise BadArguments(f"nothing in the container {sidecar.target.name} listens on port "
                               f"{port}: write {node}:PORT with the server's port")  # fmt: skip
        if kind is not None and port == kind.port:
            knowing = ForeignServer(remote, sidecar, kind, port, stays)
            if until(knowing.ready, START_S if not stays else _ANSWER_S):
                server = knowing
                if hidden := server.find_clocks():
                    self._say(f"{node} does not show its wall clock: {hidden}")
            else:
                self._say(f"{node} does not answer as {kind.name} does ({knowing.complaint()}), so "
                          "it counts as ready when it listens on its port")  # fmt: skip
        self.foreign[node] = server

    def _ship(self, remote: Remote, kind: Kind) -> None:
        """Copy the file of a kind into the sidecar; those of the nodes' image are in it already."""
        for path, content in nodecode.files([*KINDS.values(), kind]).items():
            if path.endswith("kinds.json") or kind.module in path:
                remote.put(f"{HOME}/{path}", content)

    def look(self) -> list[str]:
        self._own.look()
        return self.nodes

    def down(self) -> None:
        self.part()
        self._own.down()

    def part(self) -> None:
        """Undo all changes to the servers, and remove the sidecars and a project started here.

        The nodes keep running.
        """
        for remote in self._remotes.values():
            remote.close()
        self._own.part()

    def remote(self, node: str) -> Remote:
        return self._remotes[node] if node in self._remotes else self._own.remote(node)

    def in_image(self, node: str, image: str, archive: bytes) -> Spawn:
        return self._own.in_image(node, image, archive)

    def address(self, node: str) -> str:
        return self._addresses[node] if node in self._addresses else self._own.address(node)

    def _moved(self, node: str) -> None:
        """Update the address of a server after its container was restarted."""
        address = self._sidecars[node].address()
        if address != self._addresses[node]:
            self._addresses[node] = address
            self._name()

    def _name(self) -> None:
        """Write the servers' names and addresses into /etc/hosts of the nodes."""
        words = [word for node, address in self._addresses.items() for word in (address, node)]
        with ThreadPoolExecutor(8) as pool:
            tasks = [
                pool.submit(self._own.remote(node).run, [PROGRAM, "names", "set", *words])
                for node in self._own.nodes
            ]
        for task in tasks:
            task.result()

    def _must_reach(self) -> None:
        """Raise BadArguments if a server cannot be reached from the nodes."""
        ends = {node: (self._addresses[node], one.port) for node, one in self.foreign.items()}
        met = connect(self._own.remote(self._own.nodes[0]), ends)
        for node, answer in met.items():
            if answer != "open":
                address, port = ends[node]
                raise BadArguments(
                    f"{node} cannot be reached at {address}, port {port} ({answer}): let it listen "
                    "on its network address, not only on 127.0.0.1"
                )
