"""Measures the hunt: its speed, its time to find known defects, its silence on sound settings, and
the confirmation on real servers: `make bench-hunt`.

One row for each target, with its command, the target and the result. Each known defect is hunted
from ten seeds with only the faults of its kind named, and must be found and shrunk within LIMIT_S.
Sound settings are searched for a time (`--sound 600`), without a counterexample. `live` hunts real
clients (hunt_live.py): the speed in Node.js and Go, and defects in Node.js from three seeds each.
The groups `confirm`, `aim`, `broken` and `real` are on real servers (hunt_real.py); each row has
one seed there, or `--real-seeds 10`, from `--first` on, of 10 to 90 s each. `--quick` takes three
seeds and a few seconds, and no real servers; `--rows` chooses rows (`--rows redlock-speed,sound`),
which `--list` shows. Exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import hunt_live
from hunt_live import AGAIN, SPEEDS
from hunt_real import AIM, BROKEN, CONFIRM, SOUND_REAL, Real
from hunt_rows import KNOWN, LIBRARIES, RATES, SOUNDS, Row

from fencepost import processors
from fencepost.harness.api.session import Session
from fencepost.hunt.search.batch import Drawn
from fencepost.hunt.search.hunt import hunt
from fencepost.hunt.search.pool import local
from fencepost.hunt.search.search import Tried, search

SEEDS, QUICK_SEEDS = 10, 3
SOUND = 1_000_000
SOUND_S = 600.0
# Batches requested at once.
ROUND = 64

GROUPS: dict[str, tuple[Any, ...]] = {
    "speed": tuple(row for row, _ in RATES),
    "known": (*KNOWN, *LIBRARIES),
    "sound": SOUNDS,
    "live": (*SPEEDS, *AGAIN),
}
REAL: dict[str, tuple[Any, ...]] = {
    "confirm": CONFIRM,
    "aim": AIM,
    "broken": BROKEN,
    "real": SOUND_REAL,
}


def _chosen(parser: argparse.ArgumentParser, words: str) -> set[str]:
    """Return the keys of the requested rows, by groups and keys; by default all."""
    groups = GROUPS | REAL
    by_name = {name: {row.key for row in rows} for name, rows in groups.items()}
    by_name |= {row.key: {row.key} for rows in groups.values() for row in rows}
    names = [word.strip() for word in words.split(",") if word.strip()] or list(groups)
    for name in names:
        if name not in by_name:
            parser.error(f"--rows {name}: there is no such row; --list shows them")
    return {key for name in names for key in by_name[name]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sound", type=float, default=20, help="seconds for each sound setting")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds for each known defect")
    parser.add_argument("--real-seeds", type=int, default=1, help="seeds for each on real servers")
    parser.add_argument("--first", type=int, default=1, help="the first seed on real servers")
    parser.add_argument("--quick", action="store_true", help="three seeds, some seconds a row")
    parser.add_argument("--rows", default="", help=f"of {', '.join(GROUPS)}, or keys; see --list")
    parser.add_argument("--list", action="store_true", help="the keys of all rows")
    parser.add_argument("--processes", type=int, default=processors.count())
    given = parser.parse_args()
    if given.list:
        for group, rows in (GROUPS | REAL).items():
            print(f"{group}:", *(f"  {row.key:22} {row.name}" for row in rows), sep="\n")
        return 0
    chosen = _chosen(parser, given.rows)
    seeds, sound_s, rate_s = given.seeds, given.sound, 10.0
    if given.quick:
        seeds, sound_s, rate_s = QUICK_SEEDS, 5.0, 3.0
        chosen -= {row.key for rows in REAL.values() for row in rows}
    print(f"{given.processes} processes; each row: name, target, result\n")
    bench = Bench(given.processes)
    good = [bench.rate(row, wanted, rate_s) for row, wanted in RATES if row.key in chosen]
    good += [bench.known(row, seeds) for row in GROUPS["known"] if row.key in chosen]
    good += [bench.sound(row, sound_s) for row in SOUNDS if row.key in chosen]
    good += [hunt_live.rate(row, 2 * rate_s, _print) for row in SPEEDS if row.key in chosen]
    again = min(seeds, QUICK_SEEDS) if not given.quick else 1
    good += [hunt_live.again(row, again, _print) for row in AGAIN if row.key in chosen]
    with ExitStack() as stack:
        real = Real(stack.enter_context(Session()), given.real_seeds, given.first, _print)
        good += [real.confirm(row) for row in CONFIRM if row.key in chosen]
        good += [real.random(row) for row in (*AIM, *BROKEN, *SOUND_REAL) if row.key in chosen]
    print(f"\n{sum(good)} of {len(good)} targets reached")
    return 0 if all(good) else 1


@dataclass(frozen=True)
class Bench:
    """Measures one row after the other, with this many processes, and prints it."""

    processes: int

    def rate(self, row: Row, wanted: int, seconds: float) -> bool:
        """Measure judged schedules per second, once all processes are up."""
        before, tried, first = _processor_s(), Tried(), 0
        with local(self.processes)(row.setting()) as do:
            list(do(Drawn(1, number) for number in range(self.processes)))
            begun = time.monotonic()
            while time.monotonic() < begun + seconds:
                for made in do(Drawn(1, number) for number in range(first, first + ROUND)):
                    tried.add(made)
                first += ROUND
            rate = tried.schedules / (time.monotonic() - begun)
        each_us = (_processor_s() - before) / max(1, tried.schedules) * 1e6
        steps, events = (many / max(1, tried.schedules) for many in (tried.steps, tried.events))
        seen = f"{rate:,.0f}, of {steps:.0f} steps and {events:.0f} ops each; {each_us:.0f} us of "
        seen += "processor time each"
        return _print(row, f">= {wanted:,} schedules a second", seen, rate >= wanted)

    def known(self, row: Row, seeds: int) -> bool:
        """Find and shrink a known defect from each seed."""
        times, found, steps, schedules = [], 0, 0, []
        setting = row.setting()
        for seed in range(1, seeds + 1):
            begun = time.monotonic()
            tried, find = hunt(setting, seed, row.limit_s, self.processes)
            took = time.monotonic() - begun
            times.append(took)
            schedules.append(tried.schedules)
            if find is not None and took <= row.limit_s:
                found += 1
                steps = max(steps, len(find.story))
        median = statistics.median(times)
        good = found == seeds and median <= row.median_s and steps <= (row.steps or steps)
        wanted = f"{seeds} of {seeds} in {row.limit_s:g} s, median {row.median_s:g} s"
        wanted += f", at most {row.steps} steps" if row.steps else ""
        seen = f"{found} of {seeds}, median {median:.1f} s, longest {max(times):.1f} s, at most "
        seen += f"{steps} steps; median {statistics.median(schedules):,.0f} schedules"
        return _print(row, wanted, seen, good)

    def sound(self, row: Row, seconds: float) -> bool:
        """Find nothing; the required number of schedules is in proportion to the time."""
        tried = search(row.setting(), int(time.time()), seconds, self.processes)
        least = int(SOUND * seconds / SOUND_S)
        seen = f"{tried.schedules:,}, {len(tried.states):,} different histories"
        if tried.found is not None:
            seen += f", FOUND {tried.found}"
        good = tried.found is None and tried.schedules >= least
        return _print(row, f"nothing in {seconds:g} s and >= {least:,} schedules", seen, good)


def _processor_s() -> float:
    """Return the processor time of this process and its finished children."""
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(one.ru_utime + one.ru_stime for one in map(resource.getrusage, who))


def _print(row: Any, wanted: str, seen: str, good: bool) -> bool:
    print(f"{'ok  ' if good else 'MISS'} {row.name}", row.command, sep="\n       ")
    print(f"       wanted: {wanted}\n       seen:   {seen}", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main())
