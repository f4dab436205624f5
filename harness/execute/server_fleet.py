"""The servers of a run and the one that keeps its resource: started, settled, their logs."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.nodes import role
from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.harness.servers.external import ForeignServer
from fencepost.harness.servers.kinds import KINDS, chosen
from fencepost.harness.servers.server import Server
from fencepost.harness.servers.wait import START_S, Say
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.targets import STORAGE
from fencepost.node.places import LOGS
from fencepost.workloads.resources.registry import STORES


class ServerFleet:
    """`of_lock`: the lock's servers by node. `storage` keeps the resource."""

    def __init__(self, spec: Spec, cluster: Cluster) -> None:
        self._spec = spec
        self._cluster = cluster
        self.of_lock: dict[str, Server | ForeignServer] = {
            node: cluster.foreign.get(node) or self._server(node) for node in spec.servers
        }
        kind = KINDS[STORES[spec.stored_in].kind]
        self.storage = Server(cluster.remote(STORAGE), kind, {})

    def _server(self, node: str) -> Server:
        kind, version = chosen(self._spec.lock_type.kind, self._spec.server_version)
        return Server(self._cluster.remote(node), kind, self._settings(node), version)

    def _settings(self, node: str) -> dict[str, str]:
        """Return the settings of a server. The first of replicated Redis servers is the primary."""
        spec = self._spec
        settings = {"PERSISTENCE": spec.persistence, "CLOCK": "real", "DISK": "plain"}
        settings["SERVERS"] = str(len(spec.servers))
        settings |= needs_of(spec.families)
        first = spec.servers[0]
        if spec.lock_type.server:
            settings["FIRST"] = self._cluster.address(first)
        if spec.lock_type.replicated and node != first:
            settings["PRIMARY"] = self._cluster.address(first)
        return settings

    @property
    def _all(self) -> list[Server | ForeignServer]:
        return [*self.of_lock.values(), self.storage]

    def port(self, node: str) -> int | None:
        """Return the port that a node's server listens on; None for a client's node."""
        if node == STORAGE:
            return self.storage.port
        return self.of_lock[node].port if node in self.of_lock else None

    def own(self, node: str) -> Server:
        """Return a server that fencepost has set up, or raise ValueError."""
        server = self.of_lock[node]
        if not isinstance(server, Server):
            raise ValueError(f"the data of {node} were not created by fencepost")
        return server

    def begin_anew(self, pool: ThreadPoolExecutor, say: Say) -> list[Future[None]]:
        """Take every server down, empty it, and begin to start it; external servers stay as they
        are. The futures end once the servers are ready; `say` reports a slow one."""
        # All are down before the first one starts. It would meet members of the old cluster,
        # and take over their data (ZooKeeper) or be refused by them (etcd).
        idle = [pool.submit(server.kill) for server in self._bystanders()]
        ours = [server for server in self._all if isinstance(server, Server)]
        for task in [pool.submit(_empty, self._cluster.remote(s.node), s, say) for s in ours]:
            task.result()
        for one in idle:
            one.result()
        return [pool.submit(_start, server, say) for server in self._all]

    def _bystanders(self) -> list[Server]:
        """Servers of the same role on nodes that this run does not use, left by an earlier
        run: a sentinel there would make one of this run's servers a replica."""
        mine, used = self._spec.lock_type.kind, {*self.of_lock, STORAGE}
        nodes = [node for node in self._cluster.nodes if role(node) == mine and node not in used]
        return [] if self._spec.foreign else [self._server(node) for node in nodes]

    def settle(self) -> None:
        """Make each of the lock's servers write its data to disk."""
        for server in self.of_lock.values():
            server.settle()

    def resume(self, say: Say) -> None:
        """Take over the servers of an earlier run with their data. Their logs start empty.

        Raises:
            Crashed: one of them does not serve.
        """
        with ThreadPoolExecutor(16) as pool:
            for task in [pool.submit(_take_over, server, say) for server in self._all]:
                task.result()

    def versions(self) -> dict[str, str]:
        """Return the version of each kind of server that runs, as the server reports it."""
        kinds = {one.kind.name: one for one in self.of_lock.values() if one.kind}
        return {kind: said for kind, one in kinds.items() if (said := one.version())}

    def primary(self) -> str | None:
        """Return the server that reports that it leads, if one does."""
        with ThreadPoolExecutor(len(self.of_lock)) as pool:
            leads = pool.map(lambda server: server.leads(), self.of_lock.values())
            return next((node for node, one in zip(self.of_lock, leads, strict=True) if one), None)

    def restarted(self) -> list[str]:
        """Report external servers that restarted or ended, and not by the harness: that ended the
        faults that were on."""
        return [said for one in self._cluster.foreign.values() if (said := one.restarted())]

    def lost(self) -> list[str]:
        """Return the nodes of servers that do not answer at all; faults never leave them so."""
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(self._answers, self.of_lock)
            return [node for node, one in zip(self.of_lock, answers, strict=True) if not one]

    def _answers(self, node: str) -> bool:
        try:
            self._cluster.remote(node).run(["true"], check=False)
        except RemoteError:
            return False
        return True

    def shorten_logs(self) -> None:
        """Keep the servers' logs from growing without limit; skip nodes that do not answer."""
        for server in self._all:
            with suppress(RemoteError):
                server.shorten_log()

    def logs(self) -> dict[str, str]:
        """Return the logs of the lock's servers, by <node>/<file>."""
        with ThreadPoolExecutor(8) as pool:
            texts = pool.map(lambda server: server.log(), self.of_lock.values())
            return {
                f"{node}/server.log": text for node, text in zip(self.of_lock, texts, strict=True)
            }


def needs_of(families: Iterable[str]) -> dict[str, str]:
    """Return the settings that servers must start with for these families of faults.

    If two families need the same setting, it has both values, separated by a comma.
    """
    needed: dict[str, list[str]] = {}
    for family in dict.fromkeys(families):
        for name, value in FAMILIES[family].needs.items():
            needed.setdefault(name, []).append(value)
    return {name: ",".join(dict.fromkeys(values)) for name, values in needed.items()}


def _empty(remote: Remote, server: Server, say: Say) -> None:
    # A node that has just come up starts its server by itself; wait for that, then kill it.
    server.wait_pid(say)
    server.kill()
    server.wipe()
    files = " ".join(file for family in FAMILIES.values() for file in family.files)
    remote.run(["bash", "-c", f"rm -f {LOGS}/*.log* {files}"])


def _start(server: Server | ForeignServer, say: Say) -> None:
    server.start()
    server.wait_ready(say, START_S)


def _take_over(server: Server | ForeignServer, say: Say) -> None:
    _start(server, say)  # unless it runs
    # The writes of an earlier run have reached the disk by now, even one that loses data.
    server.settle()
    server.begin_log()
