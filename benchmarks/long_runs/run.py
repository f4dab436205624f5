"""Writes the folder of a run of the requested length."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.harness.execute import long
from fencepost.harness.results import results
from fencepost.harness.spec.spec import Spec, schedule_of
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.runs import SHORT
from long_runs.clients import Clients
from long_runs.faults import Faults
from long_runs.service import Service
from long_runs.state import Cuts
from long_runs.virtual_time import MS, SECOND, VirtualTime

CALM = ("pause:one", "kill", "partition")
TROUBLED = ("pause:client", "kill", "partition")
SLOWEST = 60  # events a second; a run is drawn long enough for this rate, and truncated
SEGMENT = 180_000
"""Events of a segment: those of ten minutes at 300 a second."""


@dataclass(frozen=True)
class Wanted:
    """A run to write: the least number of events, the clients and locks, the faults.

    `whole`: in one history, however long it is, unlike fencepost's own runs.
    """

    name: str
    events: int
    nemesis: tuple[str, ...] = CALM
    concurrency: int = 5
    locks: int = 1
    whole: bool = False

    @property
    def segments(self) -> int:
        """Return the number of its histories."""
        return 1 if self.whole else math.ceil(self.events / SEGMENT)


def write(folder: Path, wanted: Wanted, seed: int = 1) -> int:
    """Write the files of a run into `folder`; return the number of events."""
    events = wanted.events // wanted.segments
    spec = Spec(
        wanted.name,
        "etcd",
        LOCKS["etcd"].read_options({}),
        nemesis=wanted.nemesis,
        concurrency=wanted.concurrency,
        locks=wanted.locks,
        seed=seed,
        time_s=events / SLOWEST,
        **SHORT,
    )
    if wanted.segments == 1:
        return _write(folder, spec, events)
    written = 0
    for number in range(1, wanted.segments + 1):
        place = results.segment(folder, number)
        place.mkdir(parents=True)
        written += _write(place, long.segment(spec, number, spec.time_s), events)
    _describe(folder, spec.to_json() | {"schedule": []})
    return written


def _write(folder: Path, spec: Spec, events: int) -> int:
    """Write test.json, history.jsonl and logs of one history."""
    schedule = schedule_of(spec)
    for server in spec.servers:
        (folder / "nodes" / server).mkdir(parents=True)
        (folder / "nodes" / server / "server.log").write_text("ready to serve client requests\n")
    with (folder / "history.jsonl").open("wb", buffering=1 << 20) as file:
        time = VirtualTime(f"{spec.seed}/latencies", events, file.write)
        cuts = Cuts()
        service = Service(time, cuts, [lock for lock, _ in spec.locked], spec.ttl_ms * MS)
        clients = Clients(time, cuts, service, spec)
        clients.start()
        Faults(time, cuts, clients, schedule, spec.servers[0]).plan()
        time.run()
    done_s = time.over_ns / SECOND
    struck = [fault.to_json() for fault in schedule if fault.at_s < done_s]
    _describe(folder, spec.to_json() | {"time_s": done_s, "schedule": struck})
    return time.written


def _describe(folder: Path, test: dict[str, Any]) -> None:
    # A run without results is one that was killed.
    (folder / "results.json").write_text('{"run_notes": []}')
    changes = {
        "versions": {"fencepost": "0.1.0", "etcd": "etcd Version: 3.5.16"},
        "started": "2026-01-02T03:04:05Z",
    }
    (folder / "test.json").write_text(json.dumps(test | changes, indent=1))
