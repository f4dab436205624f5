"""Compares lincheck with Porcupine, and measures its growth. Prints a table; exits with 1 if a
bound is missed.

Porcupine's times were measured on another machine, so they are scaled by a loop that ran on both
(CALIBRATION_S is its time there). Parsing is left out on both sides. Sizes are measured in separate
processes, from the file to the verdict, so that memory is that of one check.

    python benchmarks/lincheck.py            everything
    python benchmarks/lincheck.py --quick    without the histories of a million ops
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random, SystemRandom
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from fencepost.checker.lincheck import check, named  # noqa: E402
from fencepost.checker.lincheck.formats.files import read  # noqa: E402

HISTORIES = Path(os.environ.get("FENCEPOST_HISTORIES", ROOT.parent / "shared" / "histories"))
CALIBRATION_S = 0.080  # of the loop below, in the minutes in which Porcupine was measured
REPEAT = 5

Event = dict[str, Any]


def calibrate() -> float:
    """Return how much slower this machine is now than the one on which Porcupine was measured."""
    d: dict[tuple[int, int], int] = {}
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        for i in range(1_000_000):
            d[i & 1023, i & 7] = i
        best = min(best, time.perf_counter() - started)
    return best / CALIBRATION_S


class Table:
    """Prints lines of: name, measured, bound, kept or MISSED."""

    def __init__(self) -> None:
        self.missed = 0

    def line(self, what: str, measured: float, bound: float, unit: str) -> None:
        kept = measured <= bound
        self.missed += not kept
        print(
            f"{what:<58}{measured:>11.2f} <= {bound:>9.2f} {unit:<4} {'' if kept else 'MISSED'}",
            flush=True,
        )


def recorded(table: Table) -> None:
    """Check all recorded histories: their verdicts, the sums next to Porcupine's, the slowest."""
    with open(HISTORIES / "verdicts.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    with open(HISTORIES / "porcupine-times.csv", newline="") as lines:
        porcupine = {row["file"]: float(row["milliseconds"]) for row in csv.DictReader(lines)}
    sums: dict[str, list[float]] = {}
    wrong, slowest = 0, 0.0
    for row in rows:
        file, form = row["file"], row["format"]
        events = [event for _, event in read(HISTORIES / file, None, print)]
        for partition in (True, False) if "/c10-" in file else (True,):
            model, init = _model(form, row["model"])
            took = []
            for _ in range(REPEAT):
                scale = SCALE
                verdict = check(events, model, init=init, partition=partition)
                took.append(verdict.seconds)
                wrong += str(verdict.valid).lower() != row["linearizable"]
            median_ms = 1000 * median(took)  # because other programs use the machine as well
            slowest = max(slowest, median_ms)
            name = file if partition else f"{file} (not partitioned)"
            if name in porcupine:
                own = sums.setdefault(form + ("" if partition else ", one object"), [0.0, 0.0])
                own[0] += median_ms
                own[1] += porcupine[name] * scale
    table.line("recorded histories with a wrong verdict", wrong, 0, "")
    for name, (ours, theirs) in sums.items():
        table.line(f"{name}, sum, next to Porcupine's scaled", ours, theirs, "ms")
    table.line("the slowest recorded history", slowest, 1000, "ms")


def _model(form: str, text: str) -> tuple[str, Any]:
    if form == "porcupine-etcd":
        return "cas-register", None
    if form == "porcupine-kv":
        return "kv", None
    return ("multi-register", {"x": 0, "y": 0}) if "multi" in text else ("cas-register", 0)


SOAK = 150  # histories, and as many corrupted ones


def crashing(table: Table) -> None:
    """Check registers whose clients crash all the time, on which other checkers run out of
    memory."""
    soak(table)
    locks = list(lock_history(10_000, crash=0.1))
    for name in (
        "mutex",
        "owner-mutex",
        "reentrant-mutex",
        "rw-lock",
        "semaphore",
        "fenced-mutex",
        "lease-mutex",
    ):
        init = 1 if name == "semaphore" else None
        verdict = check(locks, name, init=init, time_limit=20, fast=False)
        assert verdict.valid is True, (name, verdict)
        table.line(f"10,000 ops, some 600 pending acquires, {name}", verdict.seconds, 5, "s")
    for unique in (False, True):
        events = list(register_history(Random(1), 10_000, 10, 0.2, unique))
        verdict = check(events, "cas-register", init=0, time_limit=20, fast=False)
        what = "values all different" if unique else "5 values"
        assert verdict.valid is True, (what, verdict)
        table.line(f"10,000 ops, 1,000 pending writes, {what}", verdict.seconds, 5, "s")


def soak(table: Table) -> None:
    """Check registers as in Jepsen's tests of etcd, different ones each time, and corrupted
    ones."""
    seed = SystemRandom().randrange(1_000_000)
    print(f"crashing registers from seed {seed}")
    worst, invalid = {False: 0.0, True: 0.0}, 0
    for number in range(SOAK):
        random = Random(f"{seed}/{number}")
        ops, crash = random.randrange(85, 1000), random.uniform(0.02, 0.5)
        events = list(register_history(random, ops, 5, crash))
        verdict = check(events, "cas-register", init=0, time_limit=20)
        assert verdict.valid is True, (seed, number, verdict)
        worst[False] = max(worst[False], verdict.seconds * 1000)
        late = [i for i, e in enumerate(events) if e["type"] == "ok" and e["f"] == "read"]
        place = random.choice(late[-len(late) // 5 :])
        events[place] = {**events[place], "value": (events[place]["value"] + 1) % 5}
        verdict = check(events, "cas-register", init=0, time_limit=20)
        assert verdict.valid != "unknown", (seed, number, verdict)
        invalid += verdict.valid is False
        worst[True] = max(worst[True], verdict.seconds * 1000)
    what = f"85 to 1,000 ops, 2 to 50 % of writes and cas crashed, worst of {SOAK}"
    table.line(what, worst[False], 100, "ms")
    table.line(f"the same with a late read spoilt ({invalid} invalid)", worst[True], 100, "ms")


def sizes(table: Table, quick: bool) -> None:
    """Check locks of 100,000 and 1,000,000 ops and 10 processes, from the file to the verdict."""
    bounds = [
        ("owner-mutex", 100_000, 1.5, 300),
        ("owner-mutex", 1_000_000, 15, 1000),
        ("lease-mutex", 100_000, 6, 300),
        ("lease-mutex", 1_000_000, 60, 1000),
    ]
    seconds: dict[tuple[str, int], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for model, ops, most_s, most_mb in bounds:
            if quick and ops > 100_000:
                continue
            file = Path(folder) / f"{ops}.jsonl"
            if not file.exists():
                with open(file, "w") as lines:
                    lines.writelines(json.dumps(event) + "\n" for event in lock_history(ops))
            took, megabytes = measured(file, model)
            seconds[model, ops] = took
            table.line(f"{model}, {ops:,} ops, file to verdict", took, most_s, "s")
            table.line(f"{model}, {ops:,} ops, memory", megabytes, most_mb, "MB")
    for model in ("owner-mutex", "lease-mutex"):
        if (model, 1_000_000) in seconds:
            ratio = seconds[model, 1_000_000] / seconds[model, 100_000]
            table.line(f"{model}, ten times the ops, times as long", ratio, 12, "x")


def measured(file: Path, model: str) -> tuple[float, float]:
    """Return (s, MB) of `python -m checker.lincheck` on this file, which must be valid."""
    program = (
        "import resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:]).returncode\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "sys.exit(code)\n"
    )
    started = time.perf_counter()
    command = [
        sys.executable,
        "-c",
        program,
        sys.executable,
        "-m",
        "fencepost.checker.lincheck",
        str(file),
        "--model",
        model,
    ]
    done = subprocess.run(command, cwd=ROOT / "src", capture_output=True, text=True, check=False)
    took = time.perf_counter() - started
    assert done.returncode == 0, done
    kilobytes = int(done.stdout.split()[-1])
    return took, kilobytes / 1000


def lock_history(
    ops: int, processes: int = 10, crash: float = 0.0, seed: int = 1
) -> Iterator[Event]:
    """Return a valid history of a lock with leases; a share `crash` of the acquires never
    returns."""
    random = Random(seed)
    idle, waiting = list(range(processes)), []
    newest, done, holds, now = processes, 0, 0, 0
    ttl = 30_000_000_000

    def event(process: int, kind: str, f: str, value: dict[str, Any]) -> Event:
        nonlocal now
        now += random.randrange(1, 1000)
        return {"time": now, "process": process, "type": kind, "f": f, "value": value}

    while done < ops:
        while idle and (not waiting or random.random() < 0.7):
            waiting.append(idle.pop(random.randrange(len(idle))))
            yield event(waiting[-1], "invoke", "acquire", {"lock": "a", "ttl": ttl})
        process = waiting.pop(random.randrange(len(waiting)))
        done += 1
        if random.random() < crash:
            yield event(process, "info", "acquire", {"lock": "a", "ttl": ttl})
            idle.append(newest)
            newest += 1
            continue
        holds += 1
        yield event(process, "ok", "acquire", {"lock": "a", "token": holds, "hold": holds})
        if idle and random.random() < 0.5:
            waiting.append(idle.pop())
            yield event(waiting[-1], "invoke", "acquire", {"lock": "a", "ttl": ttl})
        yield event(process, "invoke", "release", {"lock": "a", "hold": holds})
        yield event(process, "ok", "release", {"lock": "a", "hold": holds})
        done += 1
        idle.append(process)
    for process in waiting:
        yield event(process, "info", "acquire", {"lock": "a", "ttl": ttl})


def register_history(
    random: Random, ops: int, processes: int, crash: float, unique: bool = False
) -> Iterator[Event]:
    """Return a valid history of a cas-register; of the writes and cas a share `crash` never
    returns, and may take effect long after."""
    state: int = 0
    idle, newest, started, value = list(range(processes)), processes, 0, 0
    running: dict[int, tuple[str, Any]] = {}
    lost: list[tuple[str, Any]] = []
    while started < ops or running:
        if lost and random.random() < 0.1:
            f, given = lost.pop(random.randrange(len(lost)))
            if f == "write" or given[0] == state:
                state = given if f == "write" else given[1]
        if idle and started < ops and (not running or random.random() < 0.5):
            process = idle.pop(random.randrange(len(idle)))
            value += 1
            new = value if unique else random.randrange(5)
            f = random.choice(["read", "write", "cas"])
            given = {"read": None, "write": new, "cas": [random.randrange(5), new]}[f]
            running[process] = f, given
            started += 1
            yield {"process": process, "type": "invoke", "f": f, "value": given}
            continue
        process = random.choice(list(running))
        f, given = running.pop(process)
        if f != "read" and random.random() < crash:
            lost.append((f, given))
            idle.append(newest)
            newest += 1
            yield {"process": process, "type": "info", "f": f, "value": given}
            continue
        kind, result = "ok", given
        if f == "read":
            result = state
        elif f == "write":
            state = given
        elif given[0] == state:
            state = given[1]
        else:
            kind = "fail"
        idle.append(process)
        yield {"process": process, "type": kind, "f": f, "value": result}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="without histories of a million ops")
    quick = parser.parse_args().quick
    global SCALE
    table = Table()
    SCALE = calibrate()
    print(f"calibration: Porcupine's times x {SCALE:.2f} on this machine now")
    if (HISTORIES / "verdicts.csv").is_file():
        recorded(table)
    else:
        print(f"no recorded histories in {HISTORIES}: set FENCEPOST_HISTORIES")
        table.missed += 1
    crashing(table)
    sizes(table, quick)
    print(f"{table.missed} bounds missed" if table.missed else "all bounds kept")
    return 1 if table.missed else 0


SCALE = 1.0

if __name__ == "__main__":
    named("register")  # imports are not measured
    sys.exit(main())
