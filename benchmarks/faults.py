"""Measures the time from a fault's decision to its effect, and whether named points are hit.

The decision is the call of the director. A program on the node polls for the effect and stamps it
with CLOCK_MONOTONIC, which all nodes share here: a process is in state T; the last answer came over
a connection that is open; the server's clock is off.

    make bench-nemesis       prints median, p99 and worst of each, against the bounds below
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.provision import brought_up
from fencepost.harness.command.screen import say
from fencepost.harness.execute.site import RunSite
from fencepost.harness.remote.remote import Program
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.director import Director
from fencepost.nemesis.nemesis import Fault
from fencepost.workloads.locks.registry import LOCKS

ROUNDS = 100
BOUNDS_MS = {
    "pause of a client": 20,
    "pause of a server": 20,
    "partition, drop": 50,
    "partition, reject": 50,
    "partition, halves of five servers": 50,
    "clock jump": 50,
}
CONNECT = ("client-1", "redis-1")
_POINT_S = 10.0

# Each prints a line when it is ready, and then one with the time of every effect.
STATE = """
import sys, time
pid = int(sys.argv[1])
before = ""
print("ready", flush=True)
while True:
    with open(f"/proc/{pid}/stat") as file:
        state = file.read().rpartition(")")[2].split()[0]
    if state == "T" and before != "T":
        print(time.monotonic_ns(), flush=True)
    before = state
    time.sleep(0.0002)
"""
ANSWERS = """
import socket, sys, time
def open_():
    link = socket.create_connection((sys.argv[1], 6379), 0.1)
    link.settimeout(0.1)
    return link
link, last, cut = open_(), time.monotonic_ns(), False
print("ready", flush=True)
while True:
    try:
        link.sendall(b"PING\\r\\n")
        if not link.recv(100):
            raise OSError
        last, cut = time.monotonic_ns(), False
        time.sleep(0.0005)
    except OSError:
        if not cut:
            print(last, flush=True)
        cut = True
        try:
            link.close()
            link = open_()
        except OSError:
            time.sleep(0.01)
"""
CLOCK = """
import socket, sys, time
link = socket.create_connection(("127.0.0.1", 6379), 5)
before = False
print("ready", flush=True)
while True:
    link.sendall(b"TIME\\r\\n")
    words = link.recv(100).split()
    off = abs(int(words[2]) - time.time()) > 5
    if off and not before:
        print(time.monotonic_ns(), flush=True)
    before = off
    time.sleep(0.0005)
"""


class Eye:
    """A program that observes an effect."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._rest = b""
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._program.stdout
        while b"\n" not in self._rest:
            chunk = self._program.stdout.read(1000)
            if not chunk:
                raise RuntimeError("the observing program has ended")
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode()

    def seen_ns(self) -> int:
        """Wait for the next effect; return its time."""
        return int(self._line())

    def close(self) -> None:
        assert self._program.stdin
        self._program.stdin.close()
        self._program.kill()
        self._program.wait()


@contextmanager
def looking(cluster: Cluster, node: str, code: str, *words: str) -> Iterator[Eye]:
    # Bounded, because a program in a container outlives the one that started it.
    timed = ["timeout", "300", "python3", "-u", "-c", code, *words]
    eye = Eye(cluster.remote(node).spawn(timed))
    try:
        yield eye
    finally:
        eye.close()


def delays_ms(director: Director, eye: Eye, fault: Fault) -> list[float]:
    """Return the delays from decision to effect, each proved by the fault's own receipt as well."""
    found = []
    for _ in range(ROUNDS):
        decided_ns = time.monotonic_ns()
        receipt = director.inject(fault)
        seen_ns = eye.seen_ns()
        if not (receipt.proved and director.heal(fault.name).proved):
            raise SystemExit(f"{fault.name} has no receipt: {receipt.how}")
        found.append(max(0.0, (seen_ns - decided_ns) / 1e6))
        # The observer must see the heal before the next one.
        time.sleep(0.15)
    return found


def hits(site: RunSite, point: str) -> int:
    """Count how often a client that was ordered to stop at a point of its code stopped there."""
    worker, remote = site.client("client-1"), site.remote("client-1")
    hit = 0
    for _ in range(ROUNDS):
        hold = None
        if point in ("before-write", "between-check-and-delete"):
            hold = _do(worker, "acquire", {"lock": "l", "ttl": 10_000_000_000})
        worker.arm(point)
        worker.begin(*_op(point, hold))
        reached = worker.wait_failpoint(point, _POINT_S)
        end = time.monotonic() + _POINT_S
        while remote.state(worker.pid) != "T" and reached and time.monotonic() < end:
            time.sleep(0.001)
        hit += reached and remote.state(worker.pid) == "T"
        remote.signal(worker.pid, signal.SIGCONT)
        done = worker.finish(_POINT_S)
        hold = hold or (done["value"]["hold"] if done else None)
        if point != "between-check-and-delete":
            _do(worker, "release", {"lock": "l", "hold": hold})
    return hit


def _op(point: str, hold: str | None) -> tuple[str, dict[str, Any]]:
    if point == "before-write":
        return "write", {"resource": "account", "version": 0, "hold": hold}
    if point == "between-check-and-delete":
        return "release", {"lock": "l", "hold": hold}
    return "acquire", {"lock": "l", "ttl": 10_000_000_000}


def _do(worker: Any, f: str, value: dict[str, Any]) -> Any:
    worker.begin(f, value)
    done = worker.finish(_POINT_S)
    if done is None or done["type"] != "ok":
        raise SystemExit(f"{f} ended as {done}")
    return done["value"].get("hold")


@contextmanager
def bench(cluster: Cluster, lock: str, folder: str) -> Iterator[tuple[RunSite, Director]]:
    options = LOCKS[lock].read_options({})
    spec = Spec("bench", lock, options, nemesis=("clock",), concurrency=3, ttl_ms=10_000)
    recorder = Recorder(Path(folder) / f"{lock}.jsonl")
    site = RunSite(spec, cluster, recorder)
    site.prepare()
    site.client_fleet.start()
    director = Director(site, lambda type, f, value, error: None)
    try:
        yield site, director
    finally:
        director.heal_all()
        site.client_fleet.close()
        recorder.close()


def measure(cluster: Cluster, site: RunSite, director: Director) -> dict[str, list[float]]:
    client, server = CONNECT
    halves = [[one, other] for one in ("redis-1", "redis-2") for other in site.servers[2:]]
    halves += [["client-1", other] for other in site.servers[:2]]
    nodes = [*site.servers, "client-1"]
    cuts = {
        "partition, drop": ([client, server], {"links": [[client, server]]}),
        "partition, reject": ([client, server], {"links": [[client, server]], "how": "reject"}),
        "partition, halves of five servers": (nodes, {"links": halves}),
    }
    found = {}
    with looking(cluster, client, STATE, str(site.client(client).pid)) as eye:
        found["pause of a client"] = delays_ms(director, eye, Fault("p", "pause", [client]))
    with looking(cluster, server, STATE, str(site.server(server).pid())) as eye:
        found["pause of a server"] = delays_ms(director, eye, Fault("p", "pause", [server]))
    for name, (targets, arguments) in cuts.items():
        with looking(cluster, client, ANSWERS, site.address(server)) as eye:
            fault = Fault(name, "partition", targets, arguments)
            found[name] = delays_ms(director, eye, fault)
    with looking(cluster, server, CLOCK) as eye:
        fault = Fault("c", "clock", [server], {"offset_s": 3600.0})
        found["clock jump"] = delays_ms(director, eye, fault)
    return found


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    servers = [f"redis-{n}" for n in range(1, 6)]
    nodes = [*servers, "storage", "client-1", "client-2", "client-3"]
    with brought_up(nodes, say) as cluster, tempfile.TemporaryDirectory() as folder:
        with bench(cluster, "redlock", folder) as (site, director):
            found = measure(cluster, site, director)
            hit = {
                point: hits(site, point)
                for point in ("acquired", "before-write", "replies-in-flight")
            }
        with bench(cluster, "broken-check-then-delete", folder) as (site, _):
            hit["between-check-and-delete"] = hits(site, "between-check-and-delete")
    return _print(found, hit)


def _print(found: dict[str, list[float]], hit: dict[str, int]) -> int:
    table = Table("from decision to effect", "median", "p99", "worst", "bound", "")
    bad = 0
    for name, delays in found.items():
        p99 = statistics.quantiles(delays, n=100)[98]
        kept = p99 <= BOUNDS_MS[name]
        bad += not kept
        figures = (statistics.median(delays), p99, max(delays), BOUNDS_MS[name])
        row = [f"{figure:.1f} ms" for figure in figures]
        table.add_row(name, *row, "kept" if kept else "NOT KEPT")
    console = Console()
    console.print(table)
    for point, count in hit.items():
        bad += count < ROUNDS
        console.print(f"stopped at {point}: {count} of {ROUNDS}")
    console.print("all bounds kept" if not bad else f"{bad} bounds not kept")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
