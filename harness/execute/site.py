"""The nodes of one run, as the nemesis and the scenarios see them: servers and clients."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from fencepost.harness.clients.current_holders import long_held
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.clients.shipped import archive_for
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.execute import resource_server
from fencepost.harness.execute.client_fleet import ClientFleet
from fencepost.harness.execute.server_fleet import ServerFleet
from fencepost.harness.servers.external import ForeignServer
from fencepost.harness.servers.server import Server
from fencepost.harness.servers.wait import Say, silent
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.targets import STORAGE
from fencepost.workloads.resources.registry import STORES


class RunSite:
    """A nemesis' Site (nemesis/site.py): the servers and the clients of a run, by node."""

    def __init__(self, spec: Spec, cluster: Cluster, recorder: Recorder) -> None:
        self._spec = spec
        self._cluster = cluster
        self._recorder = recorder
        self.server_fleet = ServerFleet(spec, cluster)
        self.client_fleet = ClientFleet(spec, cluster, recorder, self._reached_at)
        # The protocol of the nemesis, with the properties and methods below.
        self.remote, self.address = cluster.remote, cluster.address
        self.port, self.own_server = self.server_fleet.port, self.server_fleet.own
        self.primary = self.server_fleet.primary
        self.client, self.restart_client = self.client_fleet.client, self.client_fleet.restart

    def prepare(self, say: Say = silent) -> dict[str, str]:
        """Restart every server without data, install the clients' code; return the versions.

        External servers stay as they are. Clients' programs are started as well.
        `say` reports a slow server.
        """
        with ThreadPoolExecutor(16) as pool:
            shipped = self.client_fleet.ship(pool)
            starting = self.server_fleet.begin_anew(pool, say)
            for task in shipped:
                task.result()
            self.client_fleet.start_early()
            for task in starting:
                task.result()
        self.client_fleet.measure_clocks()
        if module := STORES[self._spec.stored_in].server:
            self._serve(module)
        self.server_fleet.settle()
        return self.server_fleet.versions()

    def _serve(self, module: str) -> None:
        peers = [f"{self.address(node)}:{self.port(node)}" for node in self.servers]
        lock = "" if self._spec.own else self._spec.lock
        resource_server.start(
            self.remote(STORAGE),
            module,
            self.address(STORAGE),
            self.server_fleet.storage.port,
            peers,
            archive_for(lock, self._spec.guard, self._spec.stored_in),
        )

    def resume(self, say: Say = silent) -> dict[str, str]:
        """Take over the servers of an earlier run on these nodes with their data; return the
        versions. Their logs start empty.

        Raises:
            Crashed: one of them does not serve.
        """
        self.server_fleet.resume(say)
        if STORES[self._spec.stored_in].server:
            resource_server.begin_log(self.remote(STORAGE))
        self.client_fleet.measure_clocks()
        return self.server_fleet.versions()

    def _reached_at(self, server: str) -> tuple[str, int]:
        """Return the host by which clients reach a server: its name, if its address may change."""
        host = server if server in self._cluster.foreign else self.address(server)
        port = self.port(server)
        assert port is not None, server
        return host, port

    def logs(self) -> dict[str, str]:
        """Return the logs of servers and clients, by <node>/<file>."""
        return self.server_fleet.logs() | self.client_fleet.logs()

    # The protocol of the nemesis.

    @property
    def servers(self) -> list[str]:
        return list(self.server_fleet.of_lock)

    @property
    def clients(self) -> list[str]:
        return self._spec.clients

    def server(self, node: str) -> Server | ForeignServer:
        return self.server_fleet.of_lock[node]

    def holder(self, for_s: float) -> str | None:
        return long_held(self._recorder.holding.on, self._recorder.now(), for_s)

    def leased(self) -> list[str]:
        return self._recorder.holding.leased(self._recorder.now())

    def released_late(self, node: str) -> bool:
        return self._recorder.holding.released_late(node)

    def grants(self, without: str) -> int:
        """Count the other clients' grants of the lock that this client was granted last.

        If it was granted none, count grants of any lock.
        """
        number = self.clients.index(without)
        wanted = self._recorder.last_granted(self.client(without).process)
        of_others = (
            count
            for (lock, client), count in list(self._recorder.grants.items())
            if client != number and wanted in (None, lock)
        )
        return sum(of_others)
