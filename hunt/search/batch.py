"""One batch of a hunt: drawn schedules, or all of a kind, which are run, judged and summed up.

Every batch of drawn schedules has its own random seed, so a batch has the same schedules in every
process.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from random import Random

from fencepost.hunt.faults.registry import table
from fencepost.hunt.lock_error import NEVER_ENDS, LockError
from fencepost.hunt.run import Run
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.search.exhaustive import Every, Probe, probes
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.lengths import Counting
from fencepost.hunt.search.prefilter import SAMPLE
from fencepost.hunt.search.single import single
from fencepost.hunt.search.twin import EVERY, Checked, Trace
from fencepost.hunt.sim.record import Row
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting

# Number of drawn schedules in a batch.
SIZE = 50

Covered = tuple[str, ...]


@dataclass(frozen=True)
class Drawn:
    """A batch, identified by the hunt's seed and its number. `weights` of the faults, by kind;
    `without`: the numbers of the actions that it does not inject."""

    seed: int | str
    number: int
    weights: tuple[tuple[str, float], ...] = ()
    without: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Simple:
    """A batch of the simple schedules of a user lock (single.py), by its number. `without`: the
    numbers of the actions that it does not inject."""

    number: int
    without: frozenset[int] = frozenset()


Work = Drawn | Every | Simple


@dataclass
class Batch:
    """The results of one batch. `found`: the schedule that broke a promise, and the checkers;
    `checked`: the runs that are repeated (twin.py); `cpu_s`: the processor time that it took.
    `states`: how many runs had each history; `struck`: what faults struck (Run.struck). `simple`:
    the number of a batch of simple schedules; `last`: it is the last one of these.

    For an exhaustive search, `known` is the number of schedules that led to known states, and
    `kept` contains the others.
    """

    tried: int = 0
    steps: int = 0
    events: int = 0
    known: int = 0
    simple: int | None = None
    last: bool = False
    kept: list[Schedule] = field(default_factory=list)
    states: dict[int, int] = field(default_factory=dict)
    struck: set[Covered] = field(default_factory=set)
    covered: dict[Covered, int] = field(default_factory=dict)
    injected: Counter[str] = field(default_factory=Counter)
    checked: list[Checked] = field(default_factory=list)
    found: tuple[Schedule, tuple[str, ...]] | None = None
    failure: str = ""
    cpu_s: float = 0.0

    def take(self, run: Run, surely: bool) -> bool:
        """Count an executed run and judge it; return whether it broke a promise."""
        self.tried += 1
        self.steps += run.world.step
        self.events += len(run.rows)
        if isinstance(run.tap, Trace):
            self.checked.append(Checked(run.exact_schedule, run.tap.moments(run.rows)))
        found = shape(run.rows)
        self.states[found] = self.states.get(found, 0) + 1
        self.struck.update(run.struck)
        for pair in run.seen:
            self.covered[pair] = self.covered.get(pair, 0) + 1
            self.injected[pair[0]] += 1
        broken = violations(run, run.setting.goals, surely)
        if broken:
            self.found = run.exact_schedule, tuple(broken)
        return bool(broken)


def shape(rows: Iterable[Row]) -> int:
    """Return a hash of the history, ignoring times and values.

    Runs with the same ops of the same clients, with the same outcomes in the same order, have the
    same hash.
    """
    return hash(tuple(map(_CODES.__getitem__, map(_EVENT, rows))))


_EVENT = itemgetter(1, 2, 3)


class _Codes(dict[tuple[int | str, str, str], int]):
    """Hashes of an event's process, type and f, the same in every process of the hunt.

    Successors of a process count as the same client.
    """

    def __missing__(self, event: tuple[int | str, str, str]) -> int:
        process, type, f = event
        code = 0
        for letter in type + f + str(process)[0]:
            code = (code * 1_000_003 + ord(letter)) & 0xFFFFFFFFFFFF
        self[event] = code
        return code


_CODES = _Codes()


def begins_simply(setting: Setting) -> bool:
    """Return whether a hunt tries simple schedules, not only drawn ones: that of a user lock."""
    return setting.own is not None and not setting.elector


class Searcher:
    """Executes batches in this process."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._actions = table(setting)
        # A failure without faults is raised here.
        calm = Run(setting, Schedule(), self._actions).execute()
        if calm.waits_forever and not violations(calm, setting.goals):
            raise LockError(NEVER_ENDS)
        self._steps = calm.world.step
        self._lengths: dict[str, int] | None = None
        self._simple: list[Schedule] | None = None
        self._latest: tuple[Drawn, Drawer] | None = None
        if begins_simply(setting):
            counting = Counting(setting, Schedule(), self._actions)
            counting.execute()
            self._lengths = counting.lengths

    def batch(self, work: Work) -> Batch:
        begun_s = time.process_time()
        made = self._batch(work)
        made.cpu_s = time.process_time() - begun_s
        return made

    def _batch(self, work: Work) -> Batch:
        made = Batch()
        for run, surely in self._runs(work, made):
            try:
                run.execute()
            except LockError as error:
                made.failure = str(error)
                made.found = run.exact_schedule, ()
                return made
            if isinstance(run, Probe) and run.is_known:
                made.known += 1
                continue
            if isinstance(work, Every):
                made.kept.append(run.schedule)
            if made.take(run, surely):
                return made
        return made

    def _runs(self, work: Work, made: Batch) -> Iterator[tuple[Run, bool]]:
        """Yield the runs of a batch, and whether all checkers must judge each."""
        if isinstance(work, Every):
            return self._every(work)
        return self._drawn(work) if isinstance(work, Drawn) else self._simply(work, made)

    def _drawn(self, work: Drawn) -> Iterator[tuple[Run, bool]]:
        setting, actions = self._setting, self._actions
        random = Random(f"{work.seed}/{work.number}")
        drawer = self._drawer(work)
        for place in range(SIZE):
            # The first run of a hunt has no faults.
            schedule, aims = (Schedule(), ()) if work.number == place == 0 else drawer.draw(random)
            number = work.number * SIZE + place
            tap = Trace() if number % EVERY == EVERY - 1 else None
            yield Run(setting, schedule, actions, tap, aims), number % SAMPLE == 0

    def _drawer(self, work: Drawn) -> Drawer:
        """Return the drawer of a batch. All batches of a round have the same."""
        if self._latest is not None:
            latest, drawer = self._latest
            if (latest.weights, latest.without) == (work.weights, work.without):
                return drawer
        weights = dict(work.weights)
        drawer = Drawer(
            self._setting, self._actions, self._steps, weights, work.without, self._lengths
        )
        self._latest = work, drawer
        return drawer

    def _simply(self, work: Simple, made: Batch) -> Iterator[tuple[Run, bool]]:
        if self._simple is None:
            self._simple = single(self._setting, self._actions)
        first, last = work.number * SIZE, (work.number + 1) * SIZE
        made.simple, made.last = work.number, last >= len(self._simple)
        for number, schedule in enumerate(self._simple[first:last], first):
            if work.without.isdisjoint(action for _, action in schedule.injections):
                yield Run(self._setting, schedule, self._actions), number % SAMPLE == 0

    def _every(self, work: Every) -> Iterator[tuple[Run, bool]]:
        for place, run in enumerate(probes(self._setting, self._actions, work)):
            yield run, place % SAMPLE == 0
