"""The clients of a run: their code shipped, one worker on each client node, their clocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from fencepost.harness.clients.client_program import command
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.clients.shipped import archive_for, equip, ship
from fencepost.harness.clients.streams import Streams
from fencepost.harness.clients.worker import Worker
from fencepost.harness.cluster import timing
from fencepost.harness.cluster.cluster import Cluster, Spawn
from fencepost.harness.remote.processes import CLIENT, kill_marked
from fencepost.harness.remote.remote import Program
from fencepost.harness.servers.wait import Say, silent
from fencepost.harness.spec.models import passes_a_gate
from fencepost.harness.spec.spec import Spec, counts_requests
from fencepost.harness.userlock.requirements import SITE
from fencepost.harness.userlock.user_lock import OWN
from fencepost.nemesis.targets import STORAGE
from fencepost.node.places import CODE, CODE_FILE, CODE_PATH
from fencepost.workloads.client.wire import Own, Setup
from fencepost.workloads.contract.guard import Rule
from fencepost.workloads.resources.redis_register import write_script
from fencepost.workloads.resources.registry import GUARDS


class ClientFleet:
    """One client on each of the spec's client nodes.

    `address` gives the host and port by which clients reach a server or the storage node.
    """

    def __init__(
        self,
        spec: Spec,
        cluster: Cluster,
        recorder: Recorder,
        address: Callable[[str], tuple[str, int]],
    ) -> None:
        self._spec = spec
        self._cluster = cluster
        self._recorder = recorder
        self._address = address
        self._workers: dict[str, Worker] = {}
        # Clients' programs that have been started, and have no worker yet.
        self._early: dict[str, Program] = {}
        self._restarting = {node: threading.Lock() for node in spec.clients}
        self._clocks = dict.fromkeys(spec.clients, timing.SAME)

    @property
    def workers(self) -> list[Worker]:
        return list(self._workers.values())

    def client(self, node: str) -> Worker:
        return self._workers[node]

    # Before they start.

    def ship(self, pool: ThreadPoolExecutor) -> list[Future[None]]:
        """Begin to send the clients' code to their nodes."""
        spec, own = self._spec, self._spec.own
        if own:
            parts = {OWN: own.archive()}
        else:
            parts = {CODE: archive_for(spec.lock, spec.guard, spec.stored_in)}
        return [pool.submit(self._equip, node, parts) for node in spec.clients]

    def _equip(self, node: str, parts: Mapping[str, bytes]) -> None:
        own, remote = self._spec.own, self._cluster.remote(node)
        send = ship if own is not None and own.image else equip
        send(remote, parts)

    def start_early(self) -> None:
        """Start the clients' programs. They load their libraries, and connect to no server before
        `start`. No threads: an interrupt would not stop them."""
        own = self._spec.own
        for node in self._spec.clients if own is None or not own.image else ():
            self._early[node] = self._cluster.remote(node).spawn(self._command())

    def _command(self) -> tuple[str, ...]:
        """Return the command that starts a client on its node."""
        own = self._spec.own
        packages = f"{OWN}/{SITE}" if own and own.python and own.packages else ""
        lock = self._spec.lock_type
        gated = self._counted and bool(lock.program) and passes_a_gate(lock.kind)
        return command(lock, packages, CODE_FILE if own else CODE_PATH, gated)

    @property
    def _counted(self) -> bool:
        """Whether a step of the scenario is that of a client's op."""
        return bool((self._spec.scenario or {}).get("counted"))

    # Their clocks.

    def measure_clocks(self) -> None:
        """Measure each client node's clock; clients stamp their events by it."""
        self._clocks = self._measured()

    def _measured(self) -> dict[str, timing.Clock]:
        # One after the other, because parallel round trips delay each other.
        remote = self._cluster.remote
        return {node: timing.measure(remote(node)) for node in self._spec.clients}

    def clocks(self) -> dict[str, dict[str, Any]]:
        """Return the clock of each client node relative to the harness; empty if all run on one
        kernel."""
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

    # Their programs.

    def start(self, say: Say = silent) -> None:
        """Start every client, then wait until all are up; `say` reports a slow one."""
        for number, node in enumerate(self._spec.clients):
            self._workers[node] = self._start(node, number)
            self._early.pop(node, None)
        for worker in self._workers.values():
            worker.wait_ready(say)

    def restart(self, node: str) -> Worker:
        """Replace a worker whose process has ended by a new one, which has the next process number.

        A live worker is kept: another fault has already ended and replaced it.
        """
        with self._restarting[node]:
            old = self._workers[node]
            if self._cluster.remote(node).state(old.pid, old.started) is not None:
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
        own, program = self._spec.own, self._command()
        called = own.described if own else "the worker"
        spawn: Spawn | None = None
        if (early := self._early.get(node)) is not None:

            def spawn(words: Sequence[str]) -> Program:
                return early

        elif own and own.image:
            program = own.program
            spawn = self._cluster.in_image(node, own.image, own.archive(OWN))
        remote, setup = self._cluster.remote(node), self._setup(node, process)
        return Worker(remote, self._recorder, setup, program, called, spawn)

    def _setup(self, node: str, process: int) -> Setup:
        """Return the first line that a client receives."""
        spec = self._spec
        own = spec.own
        return Setup(
            process=process,
            stride=spec.concurrency,
            node=node,
            lock=spec.lock,
            options=dict(spec.options),
            servers=spec.servers,
            addresses={one: self._address(one) for one in (*spec.servers, STORAGE)},
            storage=STORAGE,
            store=spec.stored_in,
            write_script=write_script(GUARDS[spec.guard].rules.get("lua", Rule())),
            guard=spec.guard,
            seed=str(spec.seed),
            origin_ns=self._recorder.origin_ns + self._clocks[node].offset_ns,
            stops=spec.stops if spec.lock_type.elector else None,
            closes=spec.after_cancel == "close",
            own=Own(OWN, own.python) if own and own.python else None,
            steps=self._counted or counts_requests(spec),
        )

    def close(self) -> None:
        """End every client, even after one failed; then raise the first error."""
        early, self._early = self._early, {}
        remote = self._cluster.remote
        with ThreadPoolExecutor(10) as pool:
            # Not by `map`: it cancels those that have not begun when the first one fails.
            closing = [pool.submit(worker.close) for worker in self.workers]
            closing += [
                pool.submit(
                    Streams(program, node).close, partial(kill_marked, remote(node), CLIENT)
                )
                for node, program in early.items()
            ]
        for one in closing:
            one.result()

    def logs(self) -> dict[str, str]:
        """Return the standard error of the clients' programs, by <node>/<file>."""
        said = {f"{worker.node}/worker.log": worker.last_words() for worker in self.workers}
        return {name: text for name, text in said.items() if text}
