"""A cluster whose servers are not ours: our clients and our store, in the network of these servers.

Each server has a helper beside it (helper.py), which is its node in the test. Clients reach a
server by its name, as the user's own programs do: a container that is started again may have
another address, and the name is written into the clients' /etc/hosts anew.
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
from fencepost.harness.cluster.external import common_network, described, target
from fencepost.harness.cluster.project import Project
from fencepost.harness.cluster.sidecar import Helper, Target, helpers
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.remote.remote import Remote
from fencepost.harness.remote.sidecar import HelperRemote
from fencepost.harness.servers.external import ForeignServer
from fencepost.harness.servers.external_names import Foreign, Named
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.servers.wait import START_S, until
from fencepost.nemesis.iptables import connect
from fencepost.node.kind import Kind
from fencepost.node.places import HOME, PROGRAM

# How long a server that is up may take to answer as its kind does. It has been up for a while.
_ANSWER_S = 10.0

Check = Callable[[Mapping[str, ForeignServer]], None]
"""Raises BadArguments where a fault that is asked for is none that these servers can have."""


class BesideCluster:
    """`own` are our nodes; `compose` is the command that calls Compose, if a file of it is asked
    for. Whatever the engine refuses raises Crashed; nothing is left then that `down` does not
    remove."""

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
        self._helpers: dict[str, Helper] = {}
        self._remotes: dict[str, HelperRemote] = {}
        self._addresses: dict[str, str] = {}
        self.foreign: dict[str, ForeignServer] = {}

    @property
    def nodes(self) -> list[str]:
        return [*self._helpers, *self._own.nodes]

    @property
    def versions(self) -> dict[str, str]:
        targets = {one.node: self._helpers[one.node].target for one in self._asked.servers}
        return self._own.versions | {"containers": described(targets)}

    def up(self, nodes: Iterable[str], image: str) -> None:
        """Find the servers, put a helper beside each, and bring our nodes up in their network.

        Raises:
            BadArguments: a server is not there, cannot be reached or cannot have a fault that is
                asked for.
        """
        servers = {one.node: one for one in self._asked.servers}
        containers, stays = self._containers(list(servers))
        targets = self._targets(servers, containers)
        with ThreadPoolExecutor(8) as pool:
            placed = [pool.submit(self._place, image, one) for one in targets]
        for one in placed:
            one.result()
        for node, server in servers.items():
            self._come_to_know(node, server.kind, stays)
        self._check(self.foreign)
        wanted = list(nodes)
        self._say(f"Bringing up {len(wanted)} nodes beside them")
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
                raise BadArguments(f"{one.node} and {ids[one.container]} are one container")
        for other in helpers(self._client):
            if other.target.container in ids:
                raise Crashed(
                    f"the container {other.target.name} is under test already, by another "
                    "fencepost command: wait for it to end"
                )
        network = common_network(self._client, found)
        return [replace(one, network=network) for one in found]

    def _place(self, image: str, target: Target) -> None:
        helper = Helper.place(self._client, self._own.project, image, target)
        helper.started = lambda: self._moved(target.node)
        self._helpers[target.node] = helper
        self._remotes[target.node] = HelperRemote(target.node, helper.beside)
        self._addresses[target.node] = helper.address()

    def _come_to_know(self, node: str, kind: Kind | None, stays: bool) -> None:
        """Find out what can be done to a server, and what it can be asked."""
        remote, helper = self._remotes[node], self._helpers[node]
        rules = remote.run(["iptables", "-w", "-S"], check=False)
        if rules.code:
            raise Crashed(
                f"{node}: a helper container in its network may not see the rules there "
                f"({rules.err.strip()}): the engine has to grant NET_ADMIN"
            )
        if kind is not None and kind.name not in KINDS:
            self._ship(remote, kind)
        port = int(helper.target.port)
        server = ForeignServer(remote, helper, None, port, stays)
        if not until(server.ready, START_S if not stays else _ANSWER_S):
            raise BadArguments(f"nothing in the container {helper.target.name} listens on port "
                               f"{port}: write {node}:PORT, if it is another one")  # fmt: skip
        if kind is not None and port == kind.port:
            knowing = ForeignServer(remote, helper, kind, port, stays)
            if until(knowing.ready, START_S if not stays else _ANSWER_S):
                server = knowing
                if hidden := server.find_clocks():
                    self._say(f"{node} does not show its wall clock: {hidden}")
            else:
                self._say(f"{node} does not answer as {kind.name} does ({knowing.complaint()}): no "
                          "more is known of it than that it listens on its port")  # fmt: skip
        self.foreign[node] = server

    def _ship(self, remote: Remote, kind: Kind) -> None:
        """Bring the file of a kind to the helper, which has those of the nodes' image."""
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
        """Undo what was done to the servers, remove the helpers, and the project if it was brought
        up here. Our own nodes stay."""
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
        """A server's container was started again."""
        address = self._helpers[node].address()
        if address != self._addresses[node]:
            self._addresses[node] = address
            self._name()

    def _name(self) -> None:
        """Let the clients, and whatever else is ours, find the servers by their names."""
        words = [word for node, address in self._addresses.items() for word in (address, node)]
        with ThreadPoolExecutor(8) as pool:
            tasks = [
                pool.submit(self._own.remote(node).run, [PROGRAM, "names", "set", *words])
                for node in self._own.nodes
            ]
        for task in tasks:
            task.result()

    def _must_reach(self) -> None:
        """Raise BadArguments if a server cannot be reached from our nodes."""
        ends = {node: (self._addresses[node], one.port) for node, one in self.foreign.items()}
        met = connect(self._own.remote(self._own.nodes[0]), ends)
        for node, answer in met.items():
            if answer != "open":
                address, port = ends[node]
                raise BadArguments(
                    f"{node} cannot be reached at {address}, port {port} ({answer}): it has to "
                    "listen in its network, and not on 127.0.0.1 alone"
                )
