"""How fast the hunt is, what it finds in how long, and what it does not find: `make bench-hunt`.

One row for each target, with the command that it stands for, what is wanted and what was seen. Each
known defect is hunted from ten seeds with nothing but the faults of its kind named, and must be
found and made small within LIMIT_S. Sound settings are searched for a time (`--sound 600`), in
which nothing may be found. `--quick` takes three seeds and a few seconds; `--rows` chooses rows
(`--rows redlock-speed,sound`), which `--list` shows. Exits with 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from fencepost.harness.run import written
from fencepost.harness.run.hunting import setting_of
from fencepost.hunt.batch import Drawn
from fencepost.hunt.crew import local
from fencepost.hunt.hunt import hunt
from fencepost.hunt.search import Tried, search
from fencepost.hunt.setting import Setting

LIMIT_S, MEDIAN_S = 10.0, 2.0
SEEDS, QUICK_SEEDS = 10, 3
RATE, LIBRARY_RATE = 3000, 200
STEPS = 8
SOUND = 1_000_000
SOUND_S = 600.0
# Batches that are asked for at once.
ROUND = 64


@dataclass(frozen=True)
class Row:
    """What is hunted. Without `faults`, all that fit; without `until`, the service's promises.
    `key` is what it is chosen by."""

    key: str
    name: str
    lock: str
    faults: str | None = None
    until: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    guard: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: int | None = None
    limit_s: float = LIMIT_S
    median_s: float = MEDIAN_S

    @property
    def command(self) -> str:
        """The command line that hunts this."""
        words = ["fencepost", "hunt", self.lock]
        words += [
            word for name, value in self.options.items() for word in ("-o", f"{name}={value}")
        ]
        given = {"guard": self.guard, "faults": self.faults, "until": self.until, **self.settings}
        words += [w for name, value in given.items() if value is not None
                  for w in (f"--{name}", str(value))]  # fmt: skip
        return shlex.join(words)

    def setting(self) -> Setting:
        given = {"concurrency": 2, **self.settings}
        if "server" in given:
            given["server"] = [given["server"]]
        if self.guard is not None:
            given["guard"] = self.guard
        spec = written.spec(self.lock, self.options, given)
        return setting_of(spec, self.faults, self.until, self.guard is not None)


KNOWN = (
    Row("redlock-all", "all faults: Redlock", "redlock"),
    Row("c1-kleppmann", "C1 Kleppmann's schedule", "redlock", "clock,partition", steps=STEPS),
    Row("c1-clock", "C1 a clock jumps", "redlock", "clock,partition,pause,delay,drop"),
    Row("c2-forgets", "C2 a server forgets", "redlock", "kill,partition,pause,delay,drop"),
    Row("c3-restart", "C3 delayed restart, and a clock jumps", "redlock", "clock,kill,partition",
        settings={"restart": "after-ttl"}),
    Row("c3-everysec", "C3 everysec, and power is lost", "redlock", "power,partition,pause,delay",
        settings={"persistence": "everysec"}),
    Row("c7-unchecked", "C7 the look at the clock left out",
        "redlock", "pause,partition,delay,drop",
        options={"clock_check": "false"}),
    Row("c9-unguarded", "C9 a write is held back, unguarded",
        "redlock", "delay,drop,partition", guard="none"),
    Row("c10-one", "C10 token of one server", "redlock", None, "fencing", {"token": "one"}),
    Row("c10-majority", "C10 token of a majority",
        "redlock", None, "fencing", {"token": "majority"}),
    Row("c10-value", "C10 token is the random value",
        "redlock", None, "fencing", {"token": "value"}),
    Row("c12-fenced", "C12 two stall, fenced",
        "redis", "pause,delay", "resource", {"token": "incr"}, "fenced"),
    Row("c14-owner", "C14 no owner check", "broken-no-owner-check", None, "ownership"),
    Row("c14-check-then-delete", "C14 check, then delete",
        "broken-check-then-delete", None, "ownership"),
    Row("c15-no-ttl", "C15 no TTL", "broken-no-ttl", None, "liveness"),
    Row("c16-failover", "C16 failover", "redis-replicated"),
    Row("redis-py-clock", "redis-py's lock, and a clock jumps",
        "redis-py", "clock,pause,partition"),
    Row("npm-extension", "npm redlock's failed extension (our port)",
        "redlock-npm", "pause,partition,delay,drop",
        limit_s=60, median_s=60),
    Row("redis-py-reply", "redis-py, a reply is lost",
        "redis-py", "drop", "liveness", limit_s=60, median_s=60),
    Row("etcd-3.4", "etcd's lock service of 3.4 grants to a lease that is gone",
        "etcd-lock-api", "pause",
        settings={"server": "etcd=3.4"}, limit_s=60, median_s=60),
    Row("c4-pause", "C4 a client pauses, when asked", "redlock", "pause", "resource", {}, "none"),
)  # fmt: skip
# Where redlock-py is installed: pip install redlock-py
LIBRARIES = (
    Row("redlock-py-down", "redlock-py, one server down",
        "redlock-py", "kill", settings={"restart": "never"},
        limit_s=60, median_s=60),
)  # fmt: skip
SOUNDS = (
    Row("redis-sound", "redis, tokens, fenced", "redis", "pause,partition,delay,drop",
        options={"token": "incr"}),
    Row("redlock-sound", "redlock, AOF always, delayed restart, clocks right", "redlock",
        "pause,partition,delay,drop,kill,power",
        settings={"persistence": "always", "restart": "after-ttl"}),
    Row("etcd-sound", "etcd's recipe", "etcd", "pause,partition,drop,kill"),
    Row("chubby-sound", "chubby, its sequencer checked", "chubby", "pause,partition,drop,kill",
        options={"retries": "8", "retry_delay_ms": "1000"}, guard="check-sequencer",
        until="lease_exclusion,ownership,fencing,liveness,linearizable"),
)  # fmt: skip
RATES = (
    (Row("redlock-speed", "schedules a second: Redlock, two clients, five servers", "redlock",
         "pause,partition,delay,drop"), RATE),
    (Row("redis-py-speed", "schedules a second: redis-py's own lock, on its sockets", "redis-py",
         "pause,partition,delay,drop"), LIBRARY_RATE),
)  # fmt: skip
GROUPS = {
    "speed": tuple(row for row, _ in RATES),
    "known": (*KNOWN, *LIBRARIES) if find_spec("redlock") else KNOWN,
    "sound": SOUNDS,
}


def _chosen(parser: argparse.ArgumentParser, words: str) -> set[str]:
    """The keys of the rows that were asked for, by groups and keys; all of them, if none was."""
    by_name = {name: {row.key for row in rows} for name, rows in GROUPS.items()}
    by_name |= {row.key: {row.key} for rows in GROUPS.values() for row in rows}
    names = [word.strip() for word in words.split(",") if word.strip()] or list(GROUPS)
    for name in names:
        if name not in by_name:
            parser.error(f"--rows {name}: there is no such row; --list shows them")
    return {key for name in names for key in by_name[name]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sound", type=float, default=20, help="seconds for each sound setting")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds for each known defect")
    parser.add_argument("--quick", action="store_true", help="three seeds, some seconds a row")
    parser.add_argument("--rows", default="", help=f"of {', '.join(GROUPS)}, or keys; see --list")
    parser.add_argument("--list", action="store_true", help="the keys of all rows")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.list:
        for group, rows in GROUPS.items():
            print(f"{group}:", *(f"  {row.key:22} {row.name}" for row in rows), sep="\n")
        return 0
    chosen = _chosen(parser, given.rows)
    seeds, sound_s, rate_s = given.seeds, given.sound, 10.0
    if given.quick:
        seeds, sound_s, rate_s = QUICK_SEEDS, 5.0, 3.0
    print(f"{given.processes} processes; each row: what, wanted, seen\n")
    bench = Bench(given.processes)
    good = [bench.rate(row, wanted, rate_s) for row, wanted in RATES if row.key in chosen]
    good += [bench.known(row, seeds) for row in GROUPS["known"] if row.key in chosen]
    good += [bench.sound(row, sound_s) for row in SOUNDS if row.key in chosen]
    print(f"\n{sum(good)} of {len(good)} targets reached")
    return 0 if all(good) else 1


@dataclass(frozen=True)
class Bench:
    """Measures one row after the other, with so many processes, and prints it."""

    processes: int

    def rate(self, row: Row, wanted: int, seconds: float) -> bool:
        """Schedules a second, judged, whatever is found, from when all processes are there."""
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
        """Found and made small, from each seed."""
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
        """Nothing is found; how many schedules are wanted is in proportion to the time."""
        tried = search(row.setting(), int(time.time()), seconds, self.processes)
        least = int(SOUND * seconds / SOUND_S)
        seen = f"{tried.schedules:,}, {len(tried.states):,} different histories"
        if tried.found is not None:
            seen += f", FOUND {tried.found}"
        good = tried.found is None and tried.schedules >= least
        return _print(row, f"nothing in {seconds:g} s and >= {least:,} schedules", seen, good)


def _processor_s() -> float:
    """What this process and those that it has waited for have taken, others on this machine left
    out."""
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(one.ru_utime + one.ru_stime for one in map(resource.getrusage, who))


def _print(row: Row, wanted: str, seen: str, good: bool) -> bool:
    print(f"{'ok  ' if good else 'MISS'} {row.name}", row.command, sep="\n       ")
    print(f"       wanted: {wanted}\n       seen:   {seen}", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main())
