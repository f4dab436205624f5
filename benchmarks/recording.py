"""Measures the cost of recording: the same single-Redis lock loop with and without it, in one run.

Both sides acquire and release separate locks (SET NX PX, then compare-and-delete) through the same
lock code, in the same number of processes on the same nodes against the same server, as fast as
they can. One side is fencepost's worker with its history; the other only counts. They take turns,
so that a noisy machine disturbs both alike.

    make bench-harness        prints the ratio (bound: >= 0.8) and the cost per op in microseconds
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.provision import brought_up
from fencepost.harness.command.screen import say
from fencepost.harness.execute.site import RunSite
from fencepost.harness.spec.spec import Spec
from fencepost.node.places import CODE_PATH, PYTHON
from fencepost.workloads.locks.registry import LOCKS

PROCESSES = 2
TURN_S = 1.0
TURNS = 20
BOUND = 0.8

Program = subprocess.Popen[bytes]

# The loop without the harness, as a program on the node. Each process has its own lock, so that the
# work of a grant is measured and not the waiting for one.
BARE = """
import sys, time
from random import Random
from fencepost.workloads.contract.lock import Env
from fencepost.workloads.locks.redis import RedisLock
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.transport.redis_link import RedisLink
host, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
env = Env(now=time.monotonic_ns, sleep=time.sleep, random=Random(1),
          connect=lambda node, timeout: RedisLink(host, 6379, timeout),
          address=lambda node: (host, 6379), failpoint=lambda point: None, background=None,
          renewed=None, lost=None, expired=None)
lock = RedisLock(env, ["redis-1"], LOCKS["redis"].read_options({"node_timeout_ms": "1000"}))
print("ready", flush=True)
for order in sys.stdin:
    loops, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        lock.release(lock.acquire(name, 10_000_000_000))
        loops += 1
    print(loops, flush=True)
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    options = LOCKS["redis"].read_options({"node_timeout_ms": "1000"})
    spec = Spec("bench", "redis", options, concurrency=PROCESSES, time_s=TURN_S, ttl_ms=10_000)
    with (
        brought_up([*spec.servers, "storage", *spec.clients], say) as cluster,
        tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder,
    ):
        recorder = Recorder(Path(folder) / "history.jsonl")
        site = RunSite(spec, cluster, recorder)
        site.prepare()
        site.client_fleet.start()
        programs = _start_bare(spec, cluster)
        try:
            # The first turn warms both sides up and is not counted.
            rows = [(_bare(programs), _recorded(site, recorder)) for _ in range(TURNS + 1)][1:]
        finally:
            for program in programs:
                program.kill()
                program.wait()
            site.client_fleet.close()
            recorder.close()
    return _print(rows)


def _print(rows: list[tuple[float, float]]) -> int:
    bare, recorded = (statistics.median(column) for column in zip(*rows, strict=True))
    ratio = statistics.median(after / before for before, after in rows)
    # Two ops per loop; each process' time per op, with and without.
    cost_us = (1 / recorded - 1 / bare) * PROCESSES / 2 * 1e6
    print(f"{PROCESSES} processes, {TURNS} turns of {TURN_S:g} s on each side, medians")
    print(f"bare      {bare:10.0f} lock loops/s")
    print(f"recorded  {recorded:10.0f} lock loops/s")
    print(f"ratio     {ratio:10.2f} (bound: >= {BOUND})")
    print(f"cost      {cost_us:10.1f} us an op")
    return 0 if ratio >= BOUND else 1


def _start_bare(spec: Spec, cluster: ComposeCluster) -> list[Program]:
    programs = [
        cluster.remote(node).spawn(
            ["env", f"PYTHONPATH={CODE_PATH}", PYTHON, "-c", BARE, cluster.address("redis-1"), node,
             str(TURN_S)]
        )
        for node in spec.clients
    ]  # fmt: skip
    for program in programs:
        if _line(program) != b"ready":
            assert program.stderr
            raise SystemExit(program.stderr.read().decode())
    return programs


def _bare(programs: list[Program]) -> float:
    """Return the loops per second of all processes together."""
    for program in programs:
        assert program.stdin
        program.stdin.write(b"go\n")
    return sum(int(_line(program)) for program in programs) / TURN_S


def _line(program: Program) -> bytes:
    assert program.stdout
    return program.stdout.readline().strip()


def _recorded(site: RunSite, recorder: Recorder) -> float:
    """Return the same with workers that record every op, and a history that is written."""
    settings = {
        "ttl_ns": 10_000_000_000,
        "hold_ms": (0, 0),
        "think_ms": (0, 0),
        "extend": 0,
        "write": False,
    }
    before = recorder.counts["release", "ok"]
    until = recorder.now() + int(TURN_S * 1e9)
    for worker in site.client_fleet.workers:
        worker.work({**settings, "lock": worker.node}, until)
    for worker in site.client_fleet.workers:
        if not worker.wait_idle(TURN_S + 10):
            raise SystemExit(f"{worker.node} did not come to an end: {worker.last_words()}")
    return (recorder.counts["release", "ok"] - before) / TURN_S


if __name__ == "__main__":
    started = time.monotonic()
    code = main()
    print(f"took {time.monotonic() - started:.0f} s")
    sys.exit(code)
