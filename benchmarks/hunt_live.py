"""Measures hunts of real clients for `make bench-hunt`: their speed, and how often a find returns.

The locks are those of tests/hunt/live/programs, in Node.js. Time is real there, so other work on
the machine lowers the speed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from hunt_rows import Print

from fencepost.harness.hunting.hunts import Hunt, described
from fencepost.harness.hunting.programs import conductor
from fencepost.hunt.live.conductor import Job
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.search import Tried
from fencepost.hunt.sim.schedule import Schedule

HERE = Path(__file__).resolve().parents[1]
RATE, OFTEN = 60, 0.9
_START_S = 10.0
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


NODE_SPEED = Live("node-speed", "a sound lock in Node.js", "none", "pause,delay,packet,partition")
AGAIN = (
    Live("again-owner", "no owner check", "no-owner-check", "pause,delay"),
    Live("again-check", "check, then delete", "check-then-delete", "pause:client"),
    Live("again-timeout", "a timeout is a yes", "timeout-is-a-yes", "packet,delay,partition"),
    Live("again-answer", "lease from the answer", "lease-from-the-answer", "delay,pause"),
    Live("again-second", "lease in a second request", "lease-set-later", "kill,pause,partition"),
)


def rate(row: Live, seconds: float, printed: Print) -> bool:
    """Measure schedules per second, once the programs have started."""
    begun, at = time.monotonic(), list[tuple[float, int]]()

    def tell(tried: Tried) -> None:
        if time.monotonic() > begun + _START_S:
            at.append((tried.seconds, tried.schedules))

    with _folder() as folder:
        hunt = row.hunt(Path(folder), _START_S + seconds, 1)
        tried, find = hunt.carry_out(None, tell)
    measured = 0.0
    if len(at) > 1:
        measured = (at[-1][1] - at[0][1]) / (at[-1][0] - at[0][0])
    seen = f"{measured:.0f}; {tried.late} of {tried.schedules:,} late"
    seen += "" if find is None else f", FOUND {list(find.broken)}"
    return printed(row, f">= {RATE} schedules a second", seen, measured >= RATE and find is None)


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


def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder with the SDK and the locks, as a user has it."""
    made = tempfile.TemporaryDirectory()
    for path in ("sdk/javascript/fencepost.js", "tests/hunt/live/programs/lock.js"):
        shutil.copy(HERE / path, made.name)
    return made
