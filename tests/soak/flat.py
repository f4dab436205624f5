"""Measure growth in one long run: `python -m tests.soak.flat LOCK --time 20m`.

The run has every family of faults that the lock supports. Every few seconds of the run, not of its
judging, it measures the memory of the run's processes (the harness, the clients' programs, their
pumps, the nodes' agents, the lazy disks) and the size of servers' logs and data. It prints how fast
each grows. Exit code 1 if a night at that pace would take too much.

The observer is a process of its own, because it keeps its samples: in the harness they would be
most of the growth. The run reports its progress to it, a line each time: the phase and the ops.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

import fencepost
from fencepost.harness.cluster import labels
from fencepost.harness.execute.progress import Status
from fencepost.harness.remote.processes import CLIENT
from fencepost.node.places import DATA, LOGS, MARK
from fencepost.times import describe, seconds
from tests.soak.judgement import growth
from tests.soak.measures import MB, resident
from tests.soak.run import families

EVERY_S, ROOMS_S = 5.0, 20.0
# In its first seconds a process' memory is its imports.
WARM_S = 30.0
LEAST_S = 60.0
MOST = 0.1
WHY = f"{MOST:g} MB a minute are 72 MB in a night of 12 hours"

Series = list[tuple[float, float]]
"""Seconds, and MB."""


@dataclass
class Sampler:
    """Collects amounts by group and process, during a run in the process `harness`."""

    harness: int
    begun: float = field(default_factory=time.monotonic)
    seen: dict[str, dict[int, Series]] = field(default_factory=lambda: defaultdict(dict))
    events: Series = field(default_factory=list)
    next_s: float = 0.0
    rooms_s: float = 0.0

    def look(self, phase: str, ops: int) -> None:
        """Measure, if it is time. Called twice a second (harness/execute/progress.py)."""
        now = time.monotonic() - self.begun
        if not phase.endswith("running") or now < self.next_s:
            return
        self.next_s = now + EVERY_S
        self.events.append((now, ops))
        amounts_of = looked(self.harness)
        if now >= self.rooms_s:
            self.rooms_s = now + ROOMS_S
            amounts_of |= rooms()
        for group, amounts in amounts_of.items():
            for pid, amount in amounts.items():
                self.seen[group].setdefault(pid, []).append((now, amount / MB))


def looked(harness: int) -> dict[str, dict[int, float]]:
    """Return bytes by group and process, or by the number of the node if there is no process."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    found["harness"][harness] = resident(harness)
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        if group := _group(pid):
            found[group][pid] = resident(pid)
    return found


def _group(pid: int) -> str:
    """Return the role of a process on a node; empty if it does not belong to the run."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"fencepost.node.command" in words:
            verb = words.split(b"\0")[3:5]
            return {b"agent": "agents", b"lazy": "disks"}.get(verb[0], "") if verb else ""
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if f"{MARK}={CLIENT}".encode() in environment:
            return "pumps" if b"client.pump" in words else "clients"
    return ""


def rooms() -> dict[str, dict[int, float]]:
    """Return bytes that servers' logs and data take on the nodes' disks."""
    client = docker.from_env()
    try:
        pids = [int(one.attrs["State"]["Pid"]) for one in labels.containers(client, all=False)]
    finally:
        client.close()
    places = {"servers' logs": LOGS, "servers' data": DATA}
    return {
        name: {pid: _room(Path(f"/proc/{pid}/root{place}")) for pid in pids}
        for name, place in places.items()
    }


def _room(folder: Path) -> float:
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{place}/{name}").st_blocks * 512
    return size


def slope(series: Mapping[int, Series]) -> float:
    """Return MB a minute: the median growth of single processes, of those that lived for long."""
    slopes = sorted(
        growth([amount for _, amount in warm], [at for at, _ in warm]) * 60
        for all_of_it in series.values()
        if (warm := [one for one in all_of_it if one[0] > all_of_it[0][0] + WARM_S])
        and warm[-1][0] - warm[0][0] >= LEAST_S
    )
    return slopes[len(slopes) // 2] if slopes else 0.0


def table(sampler: Sampler) -> tuple[list[str], bool]:
    """Return a line a group, and whether all are flat."""
    lines = [f"{'MB':16}{'processes':>10}{'first':>9}{'last':>9}{'worst':>9}{'a minute':>10}"]
    flat = True
    for group, series in sampler.seen.items():
        amounts = [amount for one in series.values() for _, amount in one]
        longest = max(series.values(), key=len)
        pace = slope(series)
        much = group != "servers' data" and pace > MOST
        flat = flat and not much
        lines.append(
            f"{group:16}{len(series):>10}{longest[0][1]:>9.1f}{longest[-1][1]:>9.1f}"
            f"{max(amounts):>9.1f}{pace:>+10.3f}" + (f"  GROWS: {WHY}" if much else "")
        )
    return lines, flat


def _faults(results: Mapping[str, Any]) -> int:
    """Return how many there were, in all segments of a long run."""
    return len(results["faults"]) + sum(row["faults"] for row in results.get("segments", ()))


def sample(harness: int) -> int:
    """Observe the run of this process until it ends, by the lines that it writes here."""
    sampler = Sampler(harness)
    for line in sys.stdin:
        phase, ops = line.rstrip("\n").split("\t")
        sampler.look(phase, int(ops))
    if not sampler.events:
        print("the run ended before its clients worked")
        return 1
    lines, flat = table(sampler)
    print(
        "\n".join([f"{sampler.events[-1][1]:.0f} events", *lines, "flat" if flat else "NOT FLAT"])
    )
    return 0 if flat else 1


@contextmanager
def sampled() -> Iterator[tuple[Callable[[Status], None], subprocess.Popen[str]]]:
    """Observe this process from another one within the block.

    Yield the observer's progress callback and its process, which prints its figures after the
    block.
    """
    command = [sys.executable, "-m", "soak.flat", "--sample", str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as looking:
        pipe = looking.stdin
        assert pipe is not None

        def tell(status: Status) -> None:
            pipe.write(f"{status.phase}\t{status.ops}\n")
            pipe.flush()

        yield tell, looking


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-flat", description=__doc__)
    parser.add_argument("lock", nargs="?", default="redlock")
    parser.add_argument("--time", type=seconds, default=1200.0, help="20m, 1h, ...")
    parser.add_argument("--nemesis", help="all that the lock can take, if none are given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.sample:
        return sample(given.sample)
    nemesis = given.nemesis.split(",") if given.nemesis else families(given.lock)
    with sampled() as (tell, looking):
        outcome = fencepost.run(
            given.lock, nemesis=nemesis, time=given.time, seed=given.seed, progress=tell
        )
        words = f"{describe(given.time)} with {', '.join(nemesis)}: {outcome.valid}"
        print(f"{given.lock} for {words}, {_faults(outcome.results)} faults", flush=True)
    return looking.returncode


if __name__ == "__main__":
    sys.exit(main())
