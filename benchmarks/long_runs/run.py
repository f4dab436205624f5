"""Writes the folder of a run as long as asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from fencepost.harness.run.run import schedule_of
from fencepost.harness.run.spec import Spec
from fencepost.workloads.locks.registry import LOCKS
from long_runs.clients import Clients
from long_runs.faults import Faults
from long_runs.service import Service
from long_runs.state import Cuts
from long_runs.virtual_time import MS, SECOND, VirtualTime

CALM = ("pause:one", "kill", "partition", "clock")
TROUBLED = ("pause:client", "kill", "partition", "clock")
SLOWEST = 60  # events a second; a run is drawn long enough for this rate, and cut


@dataclass(frozen=True)
class Wanted:
    """A run to write: how many events at least, of how many clients and locks, with what faults."""

    name: str
    events: int
    nemesis: tuple[str, ...] = CALM
    concurrency: int = 5
    locks: int = 1


def write(folder: Path, wanted: Wanted, seed: int = 1) -> int:
    """Write test.json, history.jsonl and logs into `folder`; returns how many events there are."""
    spec = Spec(
        wanted.name,
        "etcd",
        LOCKS["etcd"].read_options({}),
        nemesis=wanted.nemesis,
        concurrency=wanted.concurrency,
        locks=wanted.locks,
        seed=seed,
        time_s=wanted.events / SLOWEST,
    )
    schedule = schedule_of(spec)
    for server in spec.servers:
        (folder / "nodes" / server).mkdir(parents=True)
        (folder / "nodes" / server / "server.log").write_text("ready to serve client requests\n")
    with (folder / "history.jsonl").open("wb", buffering=1 << 20) as file:
        time = VirtualTime(f"{spec.seed}/latencies", wanted.events, file.write)
        cuts = Cuts()
        service = Service(time, cuts, [lock for lock, _ in spec.locked], spec.ttl_ms * MS)
        clients = Clients(time, cuts, service, spec)
        clients.start()
        Faults(time, cuts, clients, schedule, spec.servers[0]).plan()
        time.run()
    done_s = time.over_ns / SECOND
    # A run without results is one that was killed.
    (folder / "results.json").write_text('{"run_notes": []}')
    test = spec.to_json() | {
        "time_s": done_s,
        "schedule": [fault.to_json() for fault in schedule if fault.at_s < done_s],
        "versions": {"fencepost": "0.1.0", "etcd": "etcd Version: 3.5.16"},
        "started": "2026-01-02T03:04:05Z",
    }
    (folder / "test.json").write_text(json.dumps(test, indent=1))
    return time.written
