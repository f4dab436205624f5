"""Measures hunts of real clients for `make bench-hunt`: their speed, and how often a find returns.

The locks are those of tests/hunt/live/programs. Other work on the machine lowers the number of
schedules a second. So a speed is also given by processor time, that of the hunt and of its
programs: how many schedules one processor plays.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hunt_rows import Print
from live_floor import part_us

from fencepost.harness.hunting.hunts import Hunt, described
from fencepost.harness.hunting.programs import conductor
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live.clocks import not_set
from fencepost.hunt.live.conductor import Conductor, Job
from fencepost.hunt.live.look import look_at
from fencepost.hunt.live.program import ONE_THREAD
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.search.judge import violations
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting

HERE = Path(__file__).resolve().parents[1]
NODE_RATE, GO_RATE, REAL_RATE, OFTEN = 60, 150, 30, 0.9
_COMPILED = 600
"""Schedules that are played before those that count. Node.js compiles its programs meanwhile."""
_TIMES = 10
_LIMIT_S = 120


@dataclass(frozen=True)
class Live:
    """A hunt of a lock with this defect, with these faults."""

    key: str
    name: str
    defect: str
    faults: str

    @property
    def command(self) -> str:
        words = f"fencepost hunt --program 'node lock.js {self.defect}' --ship DIR"
        return f"{words} --servers redis:1 --faults {self.faults}"

    def hunt(self, folder: Path, budget_s: float, seed: int) -> Hunt:
        return described(
            "", {}, {"seed": seed}, servers="redis:1", program=f"node lock.js {self.defect}",
            ship=folder, faults=self.faults, budget=f"{budget_s:g}s",
        )  # fmt: skip


@dataclass(frozen=True)
class Speed:
    """A sound lock in this language, and how many schedules one processor plays a second. `jumps`:
    time jumps; otherwise the clocks of its programs are left alone, as on macOS."""

    key: str
    language: str
    jumps: bool
    wanted: int

    @property
    def name(self) -> str:
        time = "time jumps" if self.jumps else "in real time"
        return f"schedules a second: a sound lock in {self.language}, {time}"

    @property
    def words(self) -> str:
        return "node lock.js none" if self.language == "Node.js" else "./lock none"

    @property
    def command(self) -> str:
        lease = "" if self.jumps else f" --ttl {_SHORT}"
        words = f"fencepost hunt --program '{self.words}' --ship DIR"
        return f"{words} --servers redis:1 --faults {_FAULTS}{lease}"


_FAULTS, _SHORT = "pause,delay,packet,partition", "150ms"
SPEEDS = (
    Speed("node-speed", "Node.js", True, NODE_RATE),
    Speed("node-real-time", "Node.js", False, REAL_RATE),
    Speed("go-speed", "Go", True, GO_RATE),
    Speed("go-real-time", "Go", False, REAL_RATE),
)
AGAIN = (
    Live("again-owner", "no owner check", "no-owner-check", "pause,delay"),
    Live("again-check", "check, then delete", "check-then-delete", "pause:client"),
    Live("again-timeout", "a timeout is a yes", "timeout-is-a-yes", "packet,delay,partition"),
    Live("again-answer", "lease from the answer", "lease-from-the-answer", "delay,pause"),
    Live("again-second", "lease in a second request", "lease-set-later", "kill,pause,partition"),
)


def rate(row: Speed, seconds: float, printed: Print) -> bool:
    """Measure judged schedules per second, once the programs have started and are compiled."""
    wanted = f">= {row.wanted} schedules for each second of a processor"
    if row.language == "Go" and not shutil.which("go"):
        return printed(row, wanted, "not measured: Go is not on this machine", True)
    with _folder(row.language) as name:
        folder, given = Path(name), {} if row.jumps else {"ttl": _SHORT, "liveness_bound": 1.5}
        hunt = described(
            "", {}, {"seed": 1, **given}, servers="redis:1", program=row.words, ship=folder,
            faults=_FAULTS,
        )  # fmt: skip
        with conductor(hunt.spec, hunt.setting, None) as made:
            if not row.jumps:
                made.clock = not_set
            _played(hunt.setting, made, 1, _COMPILED)
            played = _played(hunt.setting, made, 2, within_s=seconds)
        floor_us = 2 * part_us(row.words.split(), folder, dict(ONE_THREAD))
    count, took_s, ours_s, theirs_s, broke = played
    each = count / (ours_s + theirs_s)
    seen = f"{each:.0f}: {ours_s / count * 1e3:.1f} ms of the hunt and "
    seen += f"{theirs_s / count * 1e3:.1f} ms of the programs, which take {floor_us / 1e3:.1f} ms "
    seen += f"without a hunt; {count / took_s:.0f} a second on this machine, {count:,} in all"
    seen += f", FOUND {broke}" if broke else ""
    return printed(row, wanted, seen, each >= row.wanted and not broke)


def _played(
    setting: Setting, made: Conductor, seed: int, most: int = 1 << 30, within_s: float = 600.0
) -> tuple[int, float, float, float, list[str]]:
    """Play drawn schedules. Return their number, the time, the processor time of this process and
    of the programs, in s, and the names of the promises that they broke."""
    steps = max(look_at(made).moments) * len(setting.clients)
    drawer = Drawer(setting, table(setting), steps, {}, frozenset())
    random, until = Random(str(seed)), time.monotonic() + within_s

    def drawn() -> Iterator[Job]:
        for _ in range(most):
            if time.monotonic() > until:
                return
            yield Job(*drawer.draw(random))

    begun, ours_s, before = time.monotonic(), time.process_time(), _work_s(made)
    count, broke = 0, list[str]()
    for run in made.play(drawn()):
        count += not run.hung
        broke += violations(run, setting.goals)
    theirs_s = sum(now - before.get(pid, 0.0) for pid, now in _work_s(made).items())
    took_s = time.monotonic() - begun
    return count, took_s, time.process_time() - ours_s, theirs_s, broke


def _work_s(made: Conductor) -> dict[int, float]:
    return {one.pid: one.worked_s() for one in made.programs}


def again(row: Live, seeds: int, printed: Print) -> bool:
    """Find a defect from each seed, and play its schedule ten times more."""
    came, found, times = 0, 0, list[str]()
    with _folder() as folder:
        for seed in range(1, seeds + 1):
            begun = time.monotonic()
            hunt = row.hunt(Path(folder), _LIMIT_S, seed)
            find = hunt.carry_out()[1]
            times.append(f"{time.monotonic() - begun:.0f}")
            if find is not None:
                found += 1
                came += _shown(hunt, find.schedule, next(iter(find.broken)))
    seen = f"found {found} of {seeds} in {', '.join(times)} s; {came} of {_TIMES * found} came"
    wanted = f"{seeds} of {seeds} in {_LIMIT_S} s, and {OFTEN:.0%} of ten tries each"
    return printed(row, wanted, seen, found == seeds and came >= OFTEN * _TIMES * found)


def _shown(hunt: Hunt, schedule: Schedule, checker: str) -> int:
    """Return how many of ten tries show the violation."""
    with conductor(hunt.spec, hunt.setting, _TIMES) as made:
        runs = list(made.play(Job(schedule) for _ in range(_TIMES)))
    return sum(not run.hung and bool(violations(run, [checker])) for run in runs)


def _folder(language: str = "Node.js") -> tempfile.TemporaryDirectory[str]:
    """Return a folder with the SDK and the locks, as a user has it."""
    made = tempfile.TemporaryDirectory()
    folder, programs = Path(made.name), HERE / "tests/hunt/live/programs"
    if language == "Node.js":
        shutil.copy(HERE / "sdk/javascript/fencepost.js", folder)
        shutil.copy(programs / "lock.js", folder)
        return made
    (folder / "fencepost").mkdir()
    shutil.copy(HERE / "sdk/go/fencepost.go", folder / "fencepost")
    shutil.copy(programs / "lock.go", folder / "main.go")
    (folder / "go.mod").write_text("module lock\n\ngo 1.19\n")
    env = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", "lock", "."], cwd=folder, env=env, check=True)
    return made
