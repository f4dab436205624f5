"""A hunt from start to end: search, shrink, play once more, tell."""

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
from fencepost.hunt.search.shrink import settled, shrink
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.story.story import Step, Teller, acquires, tell

# How many other finds are looked for where the first is a roundabout one, and for how long.
_OTHERS, _BATCHES = 3, 16
# Nor is another looked for once so many runs went into making finds small.
_ENOUGH = 600


@dataclass(frozen=True)
class Find:
    """A broken promise: the schedule as it was met and as small as it gets, the run, the story.

    `broken`: what each checker says that finds it violated, the one first that was shrunk for.
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
) -> tuple[Tried, Find | None]:
    """Search, and shrink what is found. `depth`: exhaustively, with up to so many strikes.

    Raises:
        LockError: the lock's own code failed, with the schedule in which it did.
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
    return tried, small.told(tried.found[0])


def again(setting: Setting, schedule: Schedule) -> Find:
    """A find whose minimal schedule is known already, told once more."""
    teller = Teller()
    run = Run(setting, schedule, table(setting), teller).carry_out()
    broken = violations(run, setting.goals, surely=True)
    return Find(schedule, schedule, run, broken, tell(run, teller, broken), 0)


def _another(setting: Setting, seed: str) -> tuple[Schedule, tuple[str, ...]] | None:
    """Another schedule that breaks a promise, if one is met soon."""
    searcher = Searcher(setting)
    made = (searcher.batch(Drawn(seed, number)) for number in range(_BATCHES))
    return next((one.found for one in made if one.found is not None and one.found[1]), None)


class _Small:
    """A schedule that breaks promises, made as small as it gets for the first of them."""

    def __init__(self, setting: Setting, met: Schedule, names: tuple[str, ...]) -> None:
        self._setting = setting
        self._actions = table(setting)
        self._names = names[:1]
        self.runs = 0
        least = shrink(met, self._actions, self._breaks)
        # What was moved may have made another strike needless.
        moved = settled(least, self._breaks, self._granted)
        self.schedule = shrink(moved, self._actions, self._breaks, again=True)

    @property
    def roundabout(self) -> bool:
        """Whether there is likely to be a shorter way to break this."""
        many = len(self.schedule.injections)
        return many > 3 or (many > 1 and any(self.schedule.head))

    def told(self, met: Schedule) -> Find:
        return replace(again(self._setting, self.schedule), met=met, runs=self.runs)

    def _breaks(self, schedule: Schedule) -> bool:
        self.runs += 1
        try:
            run = Run(self._setting, schedule, self._actions).carry_out()
        except LockError:
            return False
        return bool(violations(run, self._names))

    def _granted(self, schedule: Schedule) -> list[tuple[int, int]]:
        return acquires(Run(self._setting, schedule, self._actions).carry_out().rows)
