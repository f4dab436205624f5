"""Runs a whole hunt: search, shrink, replay, and tell the story."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fencepost.checker.verdict import Verdict
from fencepost.hunt.faults.registry import table
from fencepost.hunt.intercept.inside import swept
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.run import Run
from fencepost.hunt.search.batch import Drawn, Searcher
from fencepost.hunt.search.inherent import Comparison, compare, named
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.pool import MakePool
from fencepost.hunt.search.search import Tried, search, search_all
from fencepost.hunt.search.shrink import settle, shrink
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.story.messages import Message
from fencepost.hunt.story.story import Step, Teller, acquires, tell

# If the first counterexample is indirect: how many others to search for, and in how many batches.
_OTHERS, _BATCHES = 3, 16
# No more searching for others after this number of shrinking runs.
_ENOUGH = 600


@dataclass(frozen=True)
class Counterexample:
    """A counterexample: the original and the shrunk schedule, the run, and its story.

    `broken`: the verdict of each violated checker, beginning with the one for which it was shrunk.
    `compared`: with a reference lock; None if the lock is no user's. `came`: how often real clients
    showed it again, and in how many tries; None: simulated clients always repeat it. `messages`:
    those of real clients.
    """

    met: Schedule
    schedule: Schedule
    run: Run
    broken: dict[str, Verdict]
    story: list[Step]
    runs: int
    compared: Comparison | None = None
    came: tuple[int, int] | None = None
    messages: Sequence[Message] = ()

    @property
    def repeats(self) -> str:
        """Say how often it came again with real clients; "" with simulated ones."""
        if self.came is None:
            return ""
        often, of = self.came
        return (
            f"Reproduced: {often} of {of}."
            if often == of
            else f"It came again {often} of {of} times."
        )


def hunt(
    setting: Setting,
    seed: int,
    budget_s: float,
    processes: int | None = None,
    tell_tried: Callable[[Tried], None] = lambda tried: None,
    depth: int | None = None,
    make_pool: MakePool | None = None,
    inherent: bool = False,
) -> tuple[Tried, Counterexample | None]:
    """Search, and shrink the counterexample; with `depth`, search exhaustively up to that number of
    injections.

    A user lock's counterexample that is inherent to its servers (inherent.py) ends the search only
    with `inherent`, or if no other fault is left to try.

    Raises:
        LockError: the lock's own code failed.
    """
    actions, without = table(setting), frozenset[int]()
    tried = Tried()
    with swept():
        while True:
            if depth is None:
                tried = search(
                    setting, seed, budget_s, processes, tell_tried, None, make_pool, without, tried
                )
            else:
                tried = search_all(
                    setting, depth, budget_s, processes, tell_tried, make_pool, without, tried
                )
            if tried.failure:
                raise LockError(tried.failure)
            if tried.found is None:
                return tried, None
            find = _compared(_least(setting, seed, tried.found, without), seed)
            compared = find.compared
            if compared is None or not compared.inherent or inherent:
                return tried, find
            without |= frozenset(named(actions, compared.inherent))
            if len(without) == len(actions):
                return tried, find
            tried.inherent.append(compared)
            tried.clean_from = tried.drawn


def _compared(find: Counterexample, seed: int) -> Counterexample:
    reference = find.run.setting.reference
    if reference is None:
        return find
    found = compare(find.run, next(iter(find.broken)), reference, seed)
    story = tuple(step.words for step in find.story)
    return replace(find, compared=replace(found, story=story))


def _least(
    setting: Setting, seed: int, met: tuple[Schedule, tuple[str, ...]], without: frozenset[int]
) -> Counterexample:
    """Shrink a schedule; if it is indirect, search for others, too."""
    small = _Small(setting, *met, without)
    runs = small.runs
    for number in range(_OTHERS):
        if not small.roundabout or runs > _ENOUGH:
            break
        another = _another(setting, f"{seed}/{number}", without)
        if another is not None:
            other = _Small(setting, *another, without)
            runs += other.runs
            small = min(small, other, key=lambda one: one.schedule.size)
    return small.counterexample(met[0])


def replay(setting: Setting, schedule: Schedule) -> Counterexample:
    """Replay a known minimal schedule, and return its counterexample. Raise LookupError if it
    breaks no promise, for example because the lock has changed."""
    teller = Teller()
    run = Run(setting, schedule, table(setting), teller).execute()
    broken = violations(run, setting.goals, surely=True)
    if not broken:
        raise LookupError("the schedule of a counterexample breaks no promise")
    return Counterexample(schedule, schedule, run, broken, tell(run, teller, broken), 0)


def _another(
    setting: Setting, seed: str, without: frozenset[int]
) -> tuple[Schedule, tuple[str, ...]] | None:
    """Return another schedule that breaks a promise, if a short search meets one."""
    searcher = Searcher(setting)
    made = (searcher.batch(Drawn(seed, number, (), without)) for number in range(_BATCHES))
    return next((one.found for one in made if one.found is not None and one.found[1]), None)


class _Small:
    """Shrinks a schedule for the first of the promises that it breaks, without some actions."""

    def __init__(
        self,
        setting: Setting,
        met: Schedule,
        names: tuple[str, ...],
        without: frozenset[int],
    ) -> None:
        self._setting = setting
        self._actions = table(setting)
        self._names = names[:1]
        self._without = without
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
        if any(number in self._without for _, number in schedule.injections):
            return False
        self.runs += 1
        try:
            run = Run(self._setting, schedule, self._actions).execute()
        except LockError:
            return False
        return bool(violations(run, self._names))

    def _granted(self, schedule: Schedule) -> list[tuple[int, int]]:
        return acquires(Run(self._setting, schedule, self._actions).execute().rows)
