"""The nodes of one run as the nemesis and the scenarios see them: servers and clients."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from fencepost.compose.node.places import CODE, LOGS, MARK, PYTHON
from fencepost.harness.cluster import timing
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.nodes import role
from fencepost.harness.db.kinds import KINDS, chosen
from fencepost.harness.db.patience import START_S, Say, silent
from fencepost.harness.db.server import Server
from fencepost.harness.remote.processes import RESOURCE, marked
from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.harness.run.client_program import command
from fencepost.harness.run.recorder import Recorder
from fencepost.harness.run.shipped import archive_for
from fencepost.harness.run.spec import Spec
from fencepost.harness.run.worker import Worker
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.targets import STORAGE
from fencepost.workloads.resources.redis_register import write_script
from fencepost.workloads.resources.registry import GUARDS, STORES
from fencepost.workloads.resources.server import PORT

# How long a node may take to unpack what a client needs.
_SHIP_S = 120.0

_UNPACK = f"rm -rf {CODE}; mkdir {CODE}; tar -xf {CODE}.tar -C {CODE}"
# The resource's server needs no right of root's.
_AS_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--")


class RunSite:
    """Servers with the spec's settings, the store, and one worker on each client node."""

    def __init__(self, spec: Spec, cluster: Cluster, recorder: Recorder) -> None:
        self._spec = spec
        self._cluster = cluster
        self._recorder = recorder
        self._workers: dict[str, Worker] = {}
        self._clocks = dict.fromkeys(spec.clients, timing.SAME)
        kind, version = chosen(spec.lock_type.kind, spec.server.get(spec.lock_type.kind, ""))
        self._servers = {
            node: Server(cluster.remote(node), kind, self._settings(node), version)
            for node in spec.servers
        }
        self._store = STORES[spec.stored_in]
        self._storage = Server(cluster.remote(STORAGE), KINDS[self._store.kind], {})

    def _settings(self, node: str) -> dict[str, str]:
        """The settings of a server. Of replicated Redis servers the first is the primary."""
        spec = self._spec
        settings = {
            "PERSISTENCE": spec.persistence,
            "CLOCK": "real",
            "DISK": "plain",
        } | needs_of(spec.families)
        first = spec.servers[0]
        if spec.lock_type.replicated and node != first:
            settings["PRIMARY"] = self._cluster.address(first)
        return settings

    @property
    def servers(self) -> list[str]:
        return list(self._servers)

    @property
    def clients(self) -> list[str]:
        return self._spec.clients

    @property
    def workers(self) -> list[Worker]:
        return list(self._workers.values())

    def remote(self, node: str) -> Remote:
        return self._cluster.remote(node)

    def address(self, node: str) -> str:
        return self._cluster.address(node)

    def port(self, node: str) -> int | None:
        if node == STORAGE:
            return self._storage.kind.port
        kind = KINDS.get(role(node))
        return kind.port if kind else None

    def server(self, node: str) -> Server:
        return self._servers[node]

    def client(self, node: str) -> Worker:
        return self._workers[node]

    def prepare(self, say: Say = silent) -> dict[str, str]:
        """Start every server anew and empty, install the clients' code; return the versions.

        `say` is told which one is slow.
        """
        code = archive_for(self._spec.lock)
        with ThreadPoolExecutor(16) as pool:
            shipped = [pool.submit(self._ship, node, code) for node in self.clients]
            servers = [*self._servers.values(), self._storage]
            # All are down before the first one starts. It would meet members of the old cluster,
            # and take over their data (ZooKeeper) or be refused by them (etcd).
            for task in [pool.submit(_empty, self.remote(s.node), s, say) for s in servers]:
                task.result()
            for task in [*shipped, *(pool.submit(_start, server, say) for server in servers)]:
                task.result()
            self._clocks = self._measured()
            if self._store.server:
                self._serve(code, self._store.server)
            for server in self._servers.values():
                server.settle()
            kinds = {server.kind.name: server for server in self._servers.values()}
            return {kind: server.version() for kind, server in kinds.items()}

    def _serve(self, code: bytes, module: str) -> None:
        """Start the resource's server on the storage node; end an earlier one first."""
        self._ship(STORAGE, code)
        remote = self.remote(STORAGE)
        etcd = [f"{self.address(node)}:{self.port(node)}" for node in self.servers]
        own = self.address(STORAGE)
        serve = ["-m", module, own, str(PORT), str(self._storage.kind.port), *etcd]
        env = ["env", f"{MARK}={RESOURCE}", f"PYTHONPATH={CODE}"]
        words = shlex.join([*_AS_NOBODY, *env, PYTHON, *serve])
        for process in marked(remote, RESOURCE):
            remote.signal(process.pid, signal.SIGKILL, process.started)
        remote.run(["bash", "-c", f"setsid {words} > {LOGS}/resource.log 2>&1 < /dev/null &"])
        wait = f"until echo > /dev/tcp/{own}/{PORT}; do sleep 0.05; done 2> /dev/null"
        remote.run(["timeout", f"{START_S:.0f}", "bash", "-c", wait], timeout_s=START_S + 10)

    def _ship(self, node: str, code: bytes) -> None:
        remote = self.remote(node)
        remote.put(f"{CODE}.tar", code)
        remote.run(
            ["bash", "-c", f"{_UNPACK}; chmod -R a+rX {CODE}"],
            timeout_s=_SHIP_S,
        )

    def start_clients(self, say: Say = silent) -> None:
        """Start every client, then wait until all are up; `say` is told which one is slow."""
        for number, node in enumerate(self.clients):
            self._workers[node] = self._start(node, number)
        for worker in self._workers.values():
            worker.wait_ready(say)

    def primary(self) -> str | None:
        """The server that says that it leads, if one does."""
        with ThreadPoolExecutor(len(self._servers)) as pool:
            leads = pool.map(Server.leads, self._servers.values())
            return next((node for node, one in zip(self._servers, leads, strict=True) if one), None)

    def grants(self, without: str) -> int:
        """Count the other clients' grants of the lock that this client was granted last.

        If it was granted none, grants of any lock count.
        """
        number = self.clients.index(without)
        wanted = self._recorder.last_granted(self.client(without).process)
        of_others = (
            count
            for (lock, client), count in list(self._recorder.grants.items())
            if client != number and wanted in (None, lock)
        )
        return sum(of_others)

    def restart_client(self, node: str) -> Worker:
        """Replace a worker that is gone by a new one, which has the next process number."""
        old = self._workers[node]
        old.close()
        worker = self._workers[node] = self._start(node, old.process + self._spec.concurrency)
        worker.wait_ready()
        if old.working is not None:
            worker.work(*old.working)
        return worker

    def _start(self, node: str, process: int) -> Worker:
        servers = [*self._spec.servers, STORAGE]
        setup: dict[str, Any] = {
            "process": process,
            "stride": self._spec.concurrency,
            "node": node,
            "lock": self._spec.lock,
            "options": dict(self._spec.options),
            "servers": self._spec.servers,
            "addresses": {server: (self.address(server), self.port(server)) for server in servers},
            "storage": STORAGE,
            "store": self._spec.stored_in,
            "write_script": write_script(GUARDS[self._spec.guard]),
            "guard": self._spec.guard,
            "seed": str(self._spec.seed),
            "origin_ns": self._recorder.origin_ns + self._clocks[node].offset_ns,
        }
        return Worker(self.remote(node), self._recorder, setup, command(self._spec.lock_type))

    def clocks(self) -> dict[str, dict[str, Any]]:
        """The clock of each client node against the harness'; empty if all run on one kernel."""
        if all(clock == timing.SAME for clock in self._clocks.values()):
            return {}
        return {node: clock.to_json() for node, clock in self._clocks.items()}

    def drifted(self) -> list[str]:
        """Measure the clients' clocks again; return why the order of events may be wrong."""
        if not self.clocks():
            return []
        again = self._measured()
        words = [timing.drifted(node, self._clocks[node], again[node]) for node in again]
        return [said for said in words if said]

    def _measured(self) -> dict[str, timing.Clock]:
        # One after the other, because parallel round trips delay each other.
        return {node: timing.measure(self.remote(node)) for node in self.clients}

    def close_clients(self) -> None:
        """End every client, even after one failed; then raise the first error."""
        with ThreadPoolExecutor(10) as pool:
            # Not by `map`: it cancels those that have not begun when the first one fails.
            closing = [pool.submit(worker.close) for worker in self.workers]
        for one in closing:
            one.result()

    def shorten_logs(self) -> None:
        """Keep the servers' logs from growing without end; a node that is silent keeps its own."""
        for server in (*self._servers.values(), self._storage):
            with suppress(RemoteError):
                server.shorten_log()

    def logs(self) -> dict[str, str]:
        """The logs of servers and clients, by <node>/<file>."""
        logs = {f"{node}/server.log": server.log() for node, server in self._servers.items()}
        said = {f"{worker.node}/worker.log": worker.last_words() for worker in self.workers}
        return logs | {name: text for name, text in said.items() if text}


def needs_of(families: Iterable[str]) -> dict[str, str]:
    """The settings that servers must be started with for these families of faults.

    If two need the same setting, it has both values, with a comma between.
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


def _start(server: Server, say: Say) -> None:
    server.start()
    server.wait_ready(say, START_S)
