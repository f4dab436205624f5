"""Do real runs one after another in one process: `python -m tests.soak.run --budget 20m`.

Half of the time they share a cluster, half of it each has a fresh one. A round is one run of each
lock, with every family of faults that the lock supports. After each run its possible leftovers are
measured (measures.py). At the end it prints the table; exit code 1 if an amount after the last
round differs from the first (judgement.py), or if a run crashed.

Verdicts are printed and not judged here: faults break some of these locks.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import fencepost
from fencepost.harness.cluster.provision import Way, brought_up
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute.run import run as carry_out
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.needs import nodes
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.families import FAMILIES
from fencepost.times import seconds
from tests.soak import measures
from tests.soak.judgement import Row, Sample, judge, table

LOCKS = (
    "redlock", "etcd", "zookeeper", "redis-replicated", "postgres", "node-redlock",
    "kubernetes-client",
)  # fmt: skip
"""Every kind of server, a client in another language, and every family of faults."""
ROUNDS = 2

Run = Callable[[Spec], None]
Measure = Callable[[], dict[str, float]]


def families(lock: str) -> list[str]:
    """Return the families of faults that a lock's servers can have."""
    return [family for family in FAMILIES if _takes(lock, family)]


def _takes(lock: str, family: str) -> bool:
    try:
        from_arguments.spec(lock, {}, {"nemesis": family})
    except BadArguments:
        return False
    return True


def specs(locks: Sequence[str], time_s: float) -> list[Spec]:
    """Return a test of each lock with all its families, with a seed each, so that rounds repeat."""
    return [
        from_arguments.spec(
            lock,
            {},
            {"nemesis": families(lock), "time": time_s, "interval": 2, "seed": number},
        )
        for number, lock in enumerate(locks)
    ]


def rounds(
    tests: Sequence[Spec], run: Run, measure: Measure, over: Callable[[], bool]
) -> Iterator[Sample]:
    """Repeat all tests until the budget ends, and for two rounds at least."""
    done = 0
    while done < ROUNDS or not over():
        for test in tests:
            run(test)
            yield measure()
            if done >= ROUNDS and over():
                return
        done += 1


def standing(tests: Sequence[Spec], until_s: float, failed: list[str]) -> list[Sample]:
    """Do runs on one cluster, which stays up and has the nodes of all of them."""

    def measure() -> dict[str, float]:
        return measures.process() | measures.machine() | measures.nodes()

    with brought_up(nodes(tests), _say, way=Way(mounts=True)) as cluster:

        def run(test: Spec) -> None:
            _told(test, lambda: carry_out(test, cluster, lambda status: None).valid, failed)

        return list(rounds(tests, run, measure, lambda: time.monotonic() > until_s))


def fresh(tests: Sequence[Spec], until_s: float, failed: list[str]) -> list[Sample]:
    """Do runs each with a cluster of its own."""

    def run(test: Spec) -> None:
        settings = {"nemesis": list(test.nemesis), "time": test.time_s, "seed": test.seed}
        _told(test, lambda: fencepost.run(test.lock, interval=2, **settings).valid, failed)

    def measure() -> dict[str, float]:
        return measures.process() | measures.machine()

    return list(rounds(tests, run, measure, lambda: time.monotonic() > until_s))


def _told(test: Spec, run: Callable[[], object], failed: list[str]) -> None:
    """Do a run and print a line of it. A crashed one does not prevent the next."""
    begun = time.monotonic()
    try:
        found = run()
    except Exception as error:
        found = "failed"
        failed.append(f"{test.lock}: {error!r}")
        print(failed[-1])
    memory = measures.resident(os.getpid()) / measures.MB
    print(
        f"{test.lock:18} {found!s:8} {time.monotonic() - begun:6.1f} s  {memory:.1f} MB", flush=True
    )


def _say(words: str) -> None:
    print(words, flush=True)


def shown(title: str, series: Sequence[Sample], round_: int) -> list[Row]:
    """Print the table of a series; return the rows that are wrong."""
    rows = judge(series, round_, measures.BOUNDS)
    print(f"\n{title}: {len(series)} runs, compared after the first and the last round of {round_}")
    print("\n".join(table(rows)), flush=True)
    return [row for row in rows if row.wrong]


@contextmanager
def _places() -> Iterator[None]:
    """Put results and temporary files into folders of their own; print the results' size."""
    with tempfile.TemporaryDirectory(prefix="fencepost-soak-") as folder:
        results = Path(os.environ.setdefault("FENCEPOST_RESULTS", f"{folder}/results"))
        tempfile.tempdir = f"{folder}/tmp"
        os.mkdir(tempfile.tempdir)
        yield
        size = sum(path.lstat().st_size for path in results.rglob("*"))
        print(f"\nresults, which grow by design: {size / measures.MB:.1f} MB in {results}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--budget", type=seconds, default=1200.0, help="20m, 1h, ...")
    parser.add_argument("--time", type=seconds, default=8.0, help="how long clients work in a run")
    parser.add_argument("--locks", default=",".join(LOCKS))
    parser.add_argument("--only", choices=("standing", "fresh"))
    given = parser.parse_args()
    tests = specs(given.locks.split(","), given.time)
    phases = {"standing": standing, "fresh": fresh}
    chosen = [given.only] if given.only else list(phases)
    wrong: list[Row] = []
    failed: list[str] = []
    with _places():
        measures.machine()  # the first measurement's own cost belongs to no run
        for name in chosen:
            until_s = time.monotonic() + given.budget / len(chosen)
            print(f"\n{name} cluster", flush=True)
            series = phases[name](tests, until_s, failed)
            wrong += shown(f"{name} cluster", series, len(tests))
    print("\n".join(f"could not be carried out: {what}" for what in failed))
    print("all is the same" if not wrong else f"{len(wrong)} are not the same")
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
