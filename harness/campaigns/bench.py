"""Measure the cost of a lock: latency, rate and round trips, without faults.

Latencies and rates come from a recorded history: an acquire lasts from its invocation to its
answer. Round trips are counted by the kernel of the client's node: it counts TCP packets from the
lock's servers with the PSH flag, because an answer that fits one packet has it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.checker.history.history import Call, read
from fencepost.harness.clients import rejected
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.clients.worker import Worker
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import Crashed
from fencepost.harness.execute.site import RunSite
from fencepost.harness.spec.make import make
from fencepost.harness.spec.spec import Spec
from fencepost.settings import MOST_CLIENTS
from fencepost.workloads.locks.registry import LOCKS

BASELINE = "redis"
PHASES = {
    "alone": "one client, one lock",
    "contended": f"{MOST_CLIENTS} clients, one lock",
    "apart": f"{MOST_CLIENTS} clients, {MOST_CLIENTS} locks",
}
_SAMPLES = 20
_CHAIN = "FENCEPOST-BENCH"
_TTL_MS = 10_000
_REST_S = 30.0


@dataclass
class Measured:
    """The costs of one lock. Latencies in ms; `rate`: pairs (acquire, release) a second, of all
    clients.

    `trips`: round trips of one acquire and of one release, uncontended (medians). `versions`: of
    its servers and of the machine.
    """

    lock: str
    phases: dict[str, dict[str, float]] = field(default_factory=dict)
    trips: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"phases": self.phases, "trips": self.trips, "versions": self.versions}


def spec_of(lock: str, seed: int) -> Spec:
    """Return a test without faults, in which clients retry until they get the lock."""
    options = LOCKS[lock].read_options({})
    for name, value in (("retries", 1000), ("retry_delay_ms", 10), ("wait_ms", 60_000)):
        if name in options:
            options[name] = value
    if "node_timeout_ms" in options:
        options["node_timeout_ms"] = max(options["node_timeout_ms"], 1000)
    settings = {"concurrency": MOST_CLIENTS, "seed": seed, "ttl_ms": _TTL_MS, "time_s": 1.0}
    return make(lock, options, settings, name="bench")


def measure(spec: Spec, cluster: Cluster, time_s: float, say: Callable[[str], None]) -> Measured:
    """Measure every phase of one lock, for `time_s` each, on a cluster that is up.

    Raises:
        Crashed: a client did not stop its work, or wrote a line that is no event.
    """
    found = Measured(spec.lock)
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        recorder = Recorder(Path(folder) / "history.jsonl")
        site = RunSite(spec, cluster, recorder)
        try:
            found.versions = {**cluster.versions, **site.prepare()}
            recorder.start()
            site.client_fleet.start()
            found.trips = _trips(site)
            spans = {}
            for phase, words in PHASES.items():
                say(f"{spec.lock}: {words}")
                spans[phase] = _phase(site, recorder, phase, time_s)
        finally:
            site.client_fleet.close()
            recorder.close()
        calls = read(recorder.path).calls()
        lost, _ = rejected.read_rejected(Path(folder))
    if lost:
        raise Crashed(lost[0])
    for phase, (start, end) in spans.items():
        found.phases[phase] = _figures([c for c in calls if start <= c.begin.time < end])
    return found


def _phase(site: RunSite, recorder: Recorder, phase: str, time_s: float) -> tuple[int, int]:
    """Let the clients work; return the phase's start and end, in ns since the test's start."""
    workers = site.client_fleet.workers[:1] if phase == "alone" else site.client_fleet.workers
    start = recorder.now()
    until = start + int(time_s * 1e9)
    for number, worker in enumerate(workers):
        name = f"bench-{number}" if phase == "apart" else "bench"
        settings = {
            "lock": name,
            "ttl_ns": _TTL_MS * 1_000_000,
            "hold_ms": (0, 0),
            "think_ms": (0, 0),
            "extend": 0,
            "write": False,
        }
        worker.work(settings, until)
    time.sleep(time_s)
    for worker in workers:
        if not worker.rest(_REST_S):
            raise Crashed(f"{worker.node} did not stop its work: {worker.describe()}")
    return start, until


def _figures(calls: Sequence[Call]) -> dict[str, float]:
    """Return p50 and p99 of acquires, releases and both, in ms, and pairs a second."""
    took: dict[str, list[float]] = {"acquire": [], "release": []}
    for call in calls:
        if call.type == "ok" and call.end is not None and call.begin.f in took:
            took[call.begin.f].append((call.end.time - call.begin.time) / 1e6)
    if len(took["acquire"]) < 2 or len(took["release"]) < 2:
        return {"pairs": 0.0}
    span_s = (calls[-1].begin.time - calls[0].begin.time) / 1e9
    found = {"pairs": float(len(took["acquire"])), "rate": len(took["acquire"]) / span_s}
    for f, latencies in took.items():
        cuts = statistics.quantiles(latencies, n=100)
        found |= {f"{f}_p50": cuts[49], f"{f}_p99": cuts[98]}
    found["pair_p50"] = found["acquire_p50"] + found["release_p50"]
    return found


def _trips(site: RunSite) -> dict[str, float]:
    """Count the servers' answers to one acquire and to one release, on the client's node."""
    worker = site.client_fleet.workers[0]
    counter = _Counter(site, worker.node)
    try:
        taken: dict[str, list[int]] = {"acquire": [], "release": []}
        for sample in range(_SAMPLES + 1):
            value: dict[str, Any] = {"lock": "bench", "ttl": _TTL_MS * 1_000_000}
            sent, grant = _op(worker, "acquire", value, counter)
            release = {"lock": "bench", "hold": grant["hold"]}
            returned, _ = _op(worker, "release", release, counter)
            if sample:  # the first one opens connections and sessions
                taken["acquire"].append(sent)
                taken["release"].append(returned)
    finally:
        counter.remove()
    return {f: statistics.median(counts) for f, counts in taken.items()}


def _op(
    worker: Worker, f: str, value: dict[str, Any], counter: _Counter
) -> tuple[int, dict[str, Any]]:
    before = counter.read()
    done = worker.do(f, value, _REST_S)
    if done is None or done["type"] != "ok":
        raise Crashed(f"{worker.node}: {f} of an uncontended lock ended as {done}")
    return counter.read() - before, done["value"]


class _Counter:
    """Counts the answers that a node gets from servers, in an iptables chain of its own."""

    def __init__(self, site: RunSite, node: str) -> None:
        self._remote = site.remote(node)
        rules = [
            f"iptables -w -A {_CHAIN} -s {site.address(server)} -p tcp --tcp-flags PSH PSH"
            for server in site.servers
        ]
        hook = f"iptables -w -I INPUT -j {_CHAIN}"
        self.remove()
        self._run("; ".join([f"iptables -w -N {_CHAIN}", *rules, hook]))

    def read(self) -> int:
        listed = self._run(f"iptables -w -nvxL {_CHAIN}")
        return sum(int(row.split()[0]) for row in listed.splitlines()[2:])

    def remove(self) -> None:
        steps = [f"-D INPUT -j {_CHAIN}", f"-F {_CHAIN}", f"-X {_CHAIN}"]
        self._run("; ".join(f"iptables -w {step} 2> /dev/null" for step in steps) + "; true")

    def _run(self, script: str) -> str:
        return self._remote.run(["bash", "-c", script]).out
