"""The nodes of one run as the nemesis and the scenarios see them: servers and clients."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from fencepost.harness.clients.answer import VERSIONS
from fencepost.harness.clients.client_program import command
from fencepost.harness.clients.current_holders import long_held
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.clients.shipped import archive_for
from fencepost.harness.clients.streams import Streams
from fencepost.harness.clients.worker import Worker
from fencepost.harness.clients.zipped import PLACE, zipped
from fencepost.harness.cluster import timing
from fencepost.harness.cluster.cluster import Cluster, Spawn
from fencepost.harness.cluster.nodes import role
from fencepost.harness.remote.processes import RESOURCE, marked
from fencepost.harness.remote.remote import Program, Remote, RemoteError
from fencepost.harness.servers import serverlog
from fencepost.harness.servers.external import ForeignServer
from fencepost.harness.servers.kinds import KINDS, chosen
from fencepost.harness.servers.server import Server
from fencepost.harness.servers.wait import START_S, Say, silent
from fencepost.harness.spec.spec import Spec
from fencepost.harness.userlock.requirements import SITE
from fencepost.harness.userlock.user_lock import OWN
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.targets import STORAGE
from fencepost.node.places import CODE, LOGS, MARK, PYTHON
from fencepost.workloads.contract.guard import Rule
from fencepost.workloads.resources.redis_register import write_script
from fencepost.workloads.resources.registry import GUARDS, STORES
from fencepost.workloads.resources.server import PORT

# How long a node may take to unpack what a client needs.
_SHIP_S = 120.0

_RESOURCE_LOG = f"{LOGS}/resource.log"
# The resource's server needs no right of root's.
_AS_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--")


class RunSite:
    """Servers with the spec's settings, the store, and one worker on each client node."""

    def __init__(self, spec: Spec, cluster: Cluster, recorder: Recorder) -> None:
        self._spec = spec
        self._cluster = cluster
        self._recorder = recorder
        self._workers: dict[str, Worker] = {}
        # Clients' programs that have been started, and have no worker yet.
        self._early: dict[str, Program] = {}
        self._restarting = {node: threading.Lock() for node in spec.clients}
        self._clocks = dict.fromkeys(spec.clients, timing.SAME)
        self._servers: dict[str, Server | ForeignServer] = {
            node: cluster.foreign.get(node) or self._server(node) for node in spec.servers
        }
        self._store = STORES[spec.stored_in]
        self._storage = Server(cluster.remote(STORAGE), KINDS[self._store.kind], {})

    def _server(self, node: str) -> Server:
        role = self._spec.lock_type.kind
        kind, version = chosen(role, self._spec.server_version)
        return Server(self._cluster.remote(node), kind, self._settings(node), version)

    def _settings(self, node: str) -> dict[str, str]:
        """The settings of a server. Of replicated Redis servers the first is the primary."""
        spec = self._spec
        settings = {
            "PERSISTENCE": spec.persistence,
            "CLOCK": "real",
            "DISK": "plain",
        } | needs_of(spec.families)
        first = spec.servers[0]
        if spec.lock_type.server:
            settings["FIRST"] = self._cluster.address(first)
            settings["SERVERS"] = str(len(spec.servers))
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
            return self._storage.port
        return self._servers[node].port if node in self._servers else None

    def server(self, node: str) -> Server | ForeignServer:
        return self._servers[node]

    def own_server(self, node: str) -> Server:
        server = self._servers[node]
        if not isinstance(server, Server):
            raise ValueError(f"the data of {node} are not fencepost's")
        return server

    def client(self, node: str) -> Worker:
        return self._workers[node]

    def prepare(self, say: Say = silent) -> dict[str, str]:
        """Start every server anew and empty, install the clients' code; return the versions.

        Servers that are not ours stay as they are. Clients' programs are started as well: they load
        what they need meanwhile, and know of no server before `start_clients`.
        `say` is told which one is slow.
        """
        spec, own = self._spec, self._spec.own
        parts = (
            {OWN: own.archive()}
            if own
            else {CODE: archive_for(spec.lock, spec.guard, spec.stored_in)}
        )
        with ThreadPoolExecutor(16) as pool:
            shipped = [pool.submit(self._equip, node, parts) for node in self.clients]
            servers = [*self._servers.values(), self._storage]
            ours = [server for server in servers if isinstance(server, Server)]
            # All are down before the first one starts. It would meet members of the old cluster,
            # and take over their data (ZooKeeper) or be refused by them (etcd).
            idle = [pool.submit(server.kill) for server in self._bystanders()]
            for task in [pool.submit(_empty, self.remote(s.node), s, say) for s in ours]:
                task.result()
            for one in idle:
                one.result()
            starting = [pool.submit(_start, server, say) for server in servers]
            for task in shipped:
                task.result()
            self._start_early()
            for task in starting:
                task.result()
            self._clocks = self._measured()
            if self._store.server:
                self._serve(self._store.server)
            for server in self._servers.values():
                server.settle()
            return self._versions()

    def _bystanders(self) -> list[Server]:
        """Servers of the same role on nodes that this run does not use, as a run before it may have
        left them: a sentinel there makes a replica of what it takes for its own."""
        mine, own = self._spec.lock_type.kind, {*self._servers, STORAGE}
        nodes = [node for node in self._cluster.nodes if role(node) == mine and node not in own]
        return [] if self._spec.foreign else [self._server(node) for node in nodes]

    def resume(self, say: Say = silent) -> dict[str, str]:
        """Go on with servers that an earlier run on these nodes has used, and with what they have;
        return the versions. Their logs begin anew.

        Raises:
            Crashed: one of them does not serve.
        """
        servers = [*self._servers.values(), self._storage]
        with ThreadPoolExecutor(16) as pool:
            for task in [pool.submit(_go_on, server, say) for server in servers]:
                task.result()
        if self._store.server:
            serverlog.begin(self.remote(STORAGE), _RESOURCE_LOG)
        self._clocks = self._measured()
        return self._versions()

    def _versions(self) -> dict[str, str]:
        kinds = {one.kind.name: one for one in self._servers.values() if one.kind}
        return {kind: said for kind, one in kinds.items() if (said := one.version())}

    def _serve(self, module: str) -> None:
        """Start the resource's server on the storage node; end an earlier one first."""
        spec = self._spec
        lock = "" if spec.own else spec.lock
        self._ship(STORAGE, {CODE: archive_for(lock, spec.guard, spec.stored_in)})
        remote = self.remote(STORAGE)
        etcd = [f"{self.address(node)}:{self.port(node)}" for node in self.servers]
        here = self.address(STORAGE)
        serve = ["-m", module, here, str(PORT), str(self._storage.kind.port), *etcd]
        env = ["env", f"{MARK}={RESOURCE}", f"PYTHONPATH={CODE}"]
        words = shlex.join([*_AS_NOBODY, *env, PYTHON, *serve])
        for process in marked(remote, RESOURCE):
            remote.signal(process.pid, signal.SIGKILL, process.started)
        remote.run(["bash", "-c", f"setsid {words} > {_RESOURCE_LOG} 2>&1 < /dev/null &"])
        wait = f"until echo > /dev/tcp/{here}/{PORT}; do sleep 0.05; done 2> /dev/null"
        remote.run(["timeout", f"{START_S:.0f}", "bash", "-c", wait], timeout_s=START_S + 10)

    def _start_early(self) -> None:
        """Start the clients' programs. Not by threads, which an interrupt would leave at it."""
        own = self._spec.own
        for node in self.clients if own is None or not own.image else ():
            self._early[node] = self.remote(node).spawn(self._command())

    def _command(self) -> tuple[str, ...]:
        """What starts a client on its node."""
        own = self._spec.own
        packages = f"{OWN}/{SITE}" if own and own.python and own.packages else ""
        return command(self._spec.lock_type, packages, PLACE if own else CODE)

    def _equip(self, node: str, parts: Mapping[str, bytes]) -> None:
        """Send a client's node what its client needs."""
        own = self._spec.own
        if own is not None and not own.image:
            self.remote(node).put(PLACE, zipped())
        self._ship(node, parts)

    def _ship(self, node: str, parts: Mapping[str, bytes]) -> None:
        """Unpack each archive into its folder, in the place of what an earlier run left there."""
        remote = self.remote(node)
        for folder, archive in parts.items():
            # Beside the code: the folder of another part need not be there yet.
            tar = f"{CODE}.tar"
            remote.put(tar, archive)
            unpack = f"rm -rf {folder}; mkdir -p {folder}; tar -xf {tar} -C {folder}"
            remote.run(["bash", "-c", f"{unpack}; chmod -R a+rX {folder}"], timeout_s=_SHIP_S)

    def start_clients(self, say: Say = silent) -> None:
        """Start every client, then wait until all are up; `say` is told which one is slow."""
        for number, node in enumerate(self.clients):
            self._workers[node] = self._start(node, number)
            self._early.pop(node, None)
        for worker in self._workers.values():
            worker.wait_ready(say)

    def primary(self) -> str | None:
        """The server that says that it leads, if one does."""
        with ThreadPoolExecutor(len(self._servers)) as pool:
            leads = pool.map(lambda server: server.leads(), self._servers.values())
            return next((node for node, one in zip(self._servers, leads, strict=True) if one), None)

    def holder(self, for_s: float) -> str | None:
        return long_held(self._recorder.holding.on, self._recorder.now(), for_s)

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
        """Replace a worker that is gone by a new one, which has the next process number.

        One that lives is kept: another fault has ended it and had it replaced meanwhile.
        """
        with self._restarting[node]:
            old = self._workers[node]
            if self.remote(node).state(old.pid, old.started) is not None:
                return old
            return self._replace(node, old)

    def _replace(self, node: str, old: Worker) -> Worker:
        old.close()
        worker = self._workers[node] = self._start(node, old.process + self._spec.concurrency)
        worker.wait_ready()
        if old.working is not None:
            worker.work(*old.working)
        return worker

    def _start(self, node: str, process: int) -> Worker:
        servers = [*self._spec.servers, STORAGE]
        setup: dict[str, Any] = {
            "versions": VERSIONS,
            "process": process,
            "stride": self._spec.concurrency,
            "node": node,
            "lock": self._spec.lock,
            "options": dict(self._spec.options),
            "servers": self._spec.servers,
            "addresses": {server: (self._host(server), self.port(server)) for server in servers},
            "storage": STORAGE,
            "store": self._spec.stored_in,
            "write_script": write_script(GUARDS[self._spec.guard].rules.get("lua", Rule())),
            "guard": self._spec.guard,
            "seed": str(self._spec.seed),
            "origin_ns": self._recorder.origin_ns + self._clocks[node].offset_ns,
        }
        if (self._spec.scenario or {}).get("counted"):
            setup["steps"] = True
        own, program = self._spec.own, self._command()
        if own and own.python:
            setup["own"] = {"folder": OWN, "lock": own.python}
        called = own.described if own else "the worker"
        spawn: Spawn | None = None
        if (early := self._early.get(node)) is not None:

            def spawn(words: Sequence[str]) -> Program:
                return early

        elif own and own.image:
            program = own.program
            spawn = self._cluster.in_image(node, own.image, own.archive(OWN))
        return Worker(self.remote(node), self._recorder, setup, program, called, spawn)

    def _host(self, server: str) -> str:
        """What clients call a server: by its name, where its address may be another one later."""
        return server if server in self._cluster.foreign else self.address(server)

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

    def restarted(self) -> list[str]:
        """Say which servers that are not ours were started anew or have ended, and not from here:
        with them the faults ended that were on."""
        return [said for one in self._cluster.foreign.values() if (said := one.restarted())]

    def lost(self) -> list[str]:
        """The nodes of servers that answer nothing any more, as faults never leave them."""
        return [node for node in self.servers if not self._answers(node)]

    def _answers(self, node: str) -> bool:
        try:
            self.remote(node).run(["true"], check=False)
        except RemoteError:
            return False
        return True

    def _measured(self) -> dict[str, timing.Clock]:
        # One after the other, because parallel round trips delay each other.
        return {node: timing.measure(self.remote(node)) for node in self.clients}

    def close_clients(self) -> None:
        """End every client, even after one failed; then raise the first error."""
        early, self._early = self._early, {}
        with ThreadPoolExecutor(10) as pool:
            # Not by `map`: it cancels those that have not begun when the first one fails.
            closing = [pool.submit(worker.close) for worker in self.workers]
            closing += [
                pool.submit(Streams(program, node).close, None) for node, program in early.items()
            ]
        for one in closing:
            one.result()

    def shorten_logs(self) -> None:
        """Keep the servers' logs from growing without end; a node that is silent keeps its own."""
        for server in (*self._servers.values(), self._storage):
            with suppress(RemoteError):
                server.shorten_log()

    def logs(self) -> dict[str, str]:
        """The logs of servers and clients, by <node>/<file>."""
        with ThreadPoolExecutor(8) as pool:
            texts = pool.map(lambda server: server.log(), self._servers.values())
            logs = {
                f"{node}/server.log": text for node, text in zip(self._servers, texts, strict=True)
            }
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


def _start(server: Server | ForeignServer, say: Say) -> None:
    server.start()
    server.wait_ready(say, START_S)


def _go_on(server: Server | ForeignServer, say: Say) -> None:
    _start(server, say)  # unless it runs
    # What an earlier run wrote has reached the disk by now, where there is one that forgets.
    server.settle()
    server.begin_log()
