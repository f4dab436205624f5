"""Runs a whole hunt: search, shrink, replay, and tell the story."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fencepost.checker.verdict import Verdict
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import LockError, Run
from fencepost.hunt.search.batch import Drawn, Searcher
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.pool import Crew
from fencepost.hunt.search.search import Tried, search, search_all
from fencepost.hunt.search.shrink import settle, shrink
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.story.story import Step, Teller, acquires, tell

# If the first counterexample is indirect: how many others to search for, and in how many batches.
_OTHERS, _BATCHES = 3, 16
# No more searching for others after this number of shrinking runs.
_ENOUGH = 600


@dataclass(frozen=True)
class Counterexample:
    """A counterexample: the original and the shrunk schedule, the run, and its story.

    `broken`: the verdict of each violated checker, beginning with the one for which it was shrunk.
    """

    met: Schedule
    schedule: Schedule
    run: Run
    broken: dict[str, Verdict]
    story: list[Step]
    runs: int


def hunt(
    setting: Setting,
    seed: int,
    budget_s: float,
    processes: int | None = None,
    tell_tried: Callable[[Tried], None] = lambda tried: None,
    depth: int | None = None,
    crew: Crew | None = None,
) -> tuple[Tried, Counterexample | None]:
    """Search, and shrink the counterexample; with `depth`, search exhaustively up to that number of
    injections.

    Raises:
        LockError: the lock's own code failed.
    """
    if depth is None:
        tried = search(setting, seed, budget_s, processes, tell_tried, crew=crew)
    else:
        tried = search_all(setting, depth, budget_s, processes, tell_tried, crew)
    if tried.failure:
        raise LockError(tried.failure)
    if tried.found is None:
        return tried, None
    small = _Small(setting, *tried.found)
    runs = small.runs
    for number in range(_OTHERS):
        if not small.roundabout or runs > _ENOUGH:
            break
        met = _another(setting, f"{seed}/{number}")
        if met is not None:
            other = _Small(setting, *met)
            runs += other.runs
            small = min(small, other, key=lambda one: one.schedule.size)
    return tried, small.counterexample(tried.found[0])


def replay(setting: Setting, schedule: Schedule) -> Counterexample:
    """Replay a known minimal schedule, and return its counterexample."""
    teller = Teller()
    run = Run(setting, schedule, table(setting), teller).execute()
    broken = violations(run, setting.goals, surely=True)
    return Counterexample(schedule, schedule, run, broken, tell(run, teller, broken), 0)


def _another(setting: Setting, seed: str) -> tuple[Schedule, tuple[str, ...]] | None:
    """Return another schedule that breaks a promise, if a short search meets one."""
    searcher = Searcher(setting)
    made = (searcher.batch(Drawn(seed, number)) for number in range(_BATCHES))
    return next((one.found for one in made if one.found is not None and one.found[1]), None)


class _Small:
    """Shrinks a schedule for the first of the promises that it breaks."""

    def __init__(self, setting: Setting, met: Schedule, names: tuple[str, ...]) -> None:
        self._setting = setting
        self._actions = table(setting)
        self._names = names[:1]
        self.runs = 0
        least = shrink(met, self._actions, self._breaks)
        # Moving injections may have made another one unnecessary.
        moved = settle(least, self._breaks, self._granted)
        self.schedule = shrink(moved, self._actions, self._breaks, again=True)

    @property
    def roundabout(self) -> bool:
        """Whether a more direct counterexample is likely."""
        many = len(self.schedule.injections)
        return many > 3 or (many > 1 and any(self.schedule.head))

    def counterexample(self, met: Schedule) -> Counterexample:
        return replace(replay(self._setting, self.schedule), met=met, runs=self.runs)

    def _breaks(self, schedule: Schedule) -> bool:
        self.runs += 1
        try:
            run = Run(self._setting, schedule, self._actions).execute()
        except LockError:
            return False
        return bool(violations(run, self._names))

    def _granted(self, schedule: Schedule) -> list[tuple[int, int]]:
        return acquires(Run(self._setting, schedule, self._actions).execute().rows)
