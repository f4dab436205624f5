"""Searches with real clients: draws schedules, plays them side by side, shrinks what breaks a
promise, and plays it again to see how often it comes.

The shrinker is the hunt's own (hunt/search/shrink.py), which asks about one schedule after another.
Here an answer takes real time, but many are had at once. So the shrinker runs ahead, as if nothing
that it asks about broke a promise. Then these schedules are played side by side, and the shrinker
restarts with the answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

from fencepost.checker.checkers import of_time
from fencepost.checker.verdict import Verdict
from fencepost.hunt.faults.registry import name_of, table
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.live.conductor import Conductor, Job
from fencepost.hunt.live.first import simple
from fencepost.hunt.live.look import Look, look_at
from fencepost.hunt.live.run import RealRun
from fencepost.hunt.live.witness import Witness
from fencepost.hunt.search.batch import shape
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.search.hunt import Counterexample
from fencepost.hunt.search.inherent import Reference, named, used_in
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.search import Tell, Tried, learned_weights
from fencepost.hunt.search.shrink import shrink
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.story.story import tell

AGAIN, OFTEN = 3, 10
"""How often a counterexample is played again; how often, if it did not come each time."""
_TWICE = 2
_SHRINK_S = 30.0
_ROUND = 50


class Search:
    """One hunt with real clients. `look`: one at the program, if there was one."""

    def __init__(
        self,
        setting: Setting,
        conductor: Conductor,
        seed: int,
        tell: Tell,
        look: Look | None = None,
    ) -> None:
        self._setting = setting
        self._conductor = conductor
        self._seed = seed
        self._tell = tell
        self._look = look
        self._actions = table(setting)
        self._without: frozenset[int] = frozenset()
        reference = setting.reference
        self._reference = None if reference is None else Reference(reference, seed)
        self._steps = 1
        # Those of the first schedules that were not played yet.
        self._first: dict[Schedule, None] = {}

    def hunt(self, budget_s: float, inherent: bool) -> tuple[Tried, Counterexample | None]:
        """Search until a counterexample that is not inherent to the servers, or to the end of the
        budget. Raises LockError if the program is faulty, and Unknown if it cannot be played."""
        tried, begun = Tried(), time.monotonic()
        self._first = dict.fromkeys(self._simple(self._looked()))
        while True:
            found = self._search(tried, begun, budget_s)
            if found is None:
                return tried, None
            find = self._least(*found, inherent)
            if find is None:
                tried.dropped += 1
                continue
            compared = find.compared
            if compared is None or not compared.inherent or inherent:
                return tried, find
            self._without |= frozenset(named(self._actions, compared.inherent))
            if len(self._without) == len(self._actions):
                return tried, find
            tried.inherent.append(compared)
            tried.clean_from = tried.schedules

    def replay(self, schedule: Schedule) -> tuple[Tried, Counterexample | None]:
        """Play one schedule up to ten times."""
        begun, tried = time.monotonic(), Tried()
        self._looked()
        find = self._again(schedule, schedule, 0)
        tried.schedules = OFTEN if find is None else find.runs
        tried.seconds = time.monotonic() - begun
        return tried, find

    def _looked(self) -> Look:
        """Return a look at the program. Raises Unknown if it cannot be hunted."""
        look = self._look or look_at(self._conductor)
        look.check(self._setting)
        self._steps = max(look.moments) * len(look.moments)
        return look

    def _simple(self, look: Look) -> Iterator[Schedule]:
        """Yield the schedules to play before others are drawn."""
        setting = replace(self._setting, extends=self._setting.extends and look.extends)
        return simple(setting, self._actions, look.moments[0])

    # Searching.

    def _search(
        self, tried: Tried, begun: float, budget_s: float
    ) -> tuple[RealRun, tuple[str, ...]] | None:
        """Return a run that broke a promise, and the checkers; None at the end of the budget."""
        until = begun + budget_s
        playing = self._conductor.play(self._drawn(tried, until))
        try:
            for run in playing:
                tried.seconds = time.monotonic() - begun
                if not run.hung and not run.asked:
                    tried.unasked += 1
                    continue
                self._first.pop(run.schedule, None)
                if not run.hung:
                    _count(tried, run)
                    if tried.schedules % _ROUND == 0:
                        tried.weights = learned_weights(tried)
                    tried.late += _is_late(run)
                    broken = tuple(_broken(run, self._setting.goals))
                    if broken:
                        return run, broken
                self._tell(tried)
        finally:
            playing.close()  # type: ignore[attr-defined]  # a generator
        tried.seconds, tried.hung = time.monotonic() - begun, self._conductor.hung
        return None

    def _drawn(self, tried: Tried, until: float) -> Iterator[Job]:
        random = Random(f"{self._seed}/{tried.schedules}")
        yield from map(Job, self._left(until))
        while time.monotonic() < until:
            drawer = Drawer(self._setting, self._actions, self._steps, tried.weights, self._without)
            for _ in range(_ROUND):
                if time.monotonic() >= until:
                    return
                schedule, aims = drawer.draw(random)
                yield Job(schedule, aims)

    def _left(self, until: float) -> Iterator[Schedule]:
        """Yield the first schedules that are left, without the inherent faults."""
        for schedule in list(self._first):
            if time.monotonic() >= until:
                return
            if self._without.isdisjoint(number for _, number in schedule.injections):
                yield schedule

    # Shrinking, and playing again.

    def _least(
        self, run: RealRun, broken: tuple[str, ...], inherent: bool
    ) -> Counterexample | None:
        """Return the shrunk counterexample; None if it never came again. One that is inherent to
        the servers is not shrunk, unless it ends the hunt: that would take half of the budget."""
        met, name = run.exact_schedule, broken[:1]
        ahead = _Ahead(self._conductor, name)
        whole, theirs = met, self._that_break_reference(met, broken[0])
        if theirs and not inherent:
            mine = [one for one in met.injections if one not in theirs]
            if ahead.shows(without := Schedule(met.head, tuple(mine))):
                whole = without
            elif ahead.shows(alone := Schedule(met.head, tuple(theirs))) and (
                find := self._again(met, alone, ahead.runs)
            ):
                return find
        least = ahead.shrink(whole, self._actions)
        find = self._again(met, least, ahead.runs)
        if find is None and least != met:
            find = self._again(met, met, ahead.runs)
        return find

    def _that_break_reference(self, met: Schedule, checker: str) -> list[tuple[int, int]]:
        """Return the injections whose faults, each alone, break this promise of the reference lock;
        none if no other faults would be left to search with."""
        if self._reference is None:
            return []
        used = {name_of(self._actions[number - 1]) for _, number in met.injections}
        breaks = {one for one in used if self._reference.breaks(checker, {one})}
        known = frozenset(named(self._actions, breaks))
        if len(self._without | known) == len(self._actions):
            return []
        return [one for one in met.injections if one[1] in known]

    def _again(self, met: Schedule, schedule: Schedule, runs: int) -> Counterexample | None:
        """Play a counterexample again, three times or ten, and tell the first run that shows it."""
        played: list[tuple[RealRun, Witness]] = []
        for count in (AGAIN, OFTEN - AGAIN):
            witnesses = [Witness(self._setting) for _ in range(count)]
            by_tap = {id(one): one for one in witnesses}
            jobs = [Job(schedule, (), one) for one in witnesses]
            played += [(run, by_tap[id(run.tap)]) for run in self._conductor.play(jobs)]
            judged = [
                (one, witness, _broken(one, self._setting.goals, surely=True))
                for one, witness in played
                if not one.hung
            ]
            shown = [row for row in judged if row[2]]
            if len(shown) == count == AGAIN:
                break
        if not shown:
            return None
        run, witness, broken = shown[0]
        if of_time(next(iter(broken))) and len(shown) < len(played):
            return None  # in real time, a promise about time is broken by a busy machine, too
        # Where a server sends unasked, a reply belongs to no request, so there is no picture.
        messages = () if run.unasked else witness.recorder.found(run.rows)
        find = Counterexample(
            met, schedule, run, broken, tell(run, witness.teller, broken), runs + len(played),
            came=(len(shown), len(played)), messages=messages,
        )  # fmt: skip
        if self._reference is None:
            return find
        found = self._reference.compared(next(iter(broken)), used_in(run))
        return replace(
            find, compared=replace(found, story=tuple(step.words for step in find.story))
        )


class _Enough(Exception):
    """The shrinker has asked about as many schedules as are played at once."""


class _Ahead:
    """Answers the shrinker. `runs`: how many it has played."""

    def __init__(self, conductor: Conductor, names: tuple[str, ...]) -> None:
        self._conductor = conductor
        self._names = names
        self._known: dict[Schedule, bool] = {}
        self._asked: list[Schedule] = []
        self._until = time.monotonic() + _SHRINK_S
        self.runs = 0

    def shrink(self, met: Schedule, actions: Sequence[Action]) -> Schedule:
        while True:
            self._asked = []
            with suppress(_Enough):
                found = shrink(met, actions, self._breaks, near=True)
                if not self._asked:
                    return found
            self._play()

    def shows(self, schedule: Schedule) -> bool:
        """Return whether a schedule breaks the promise."""
        self._asked = [schedule]
        self._play()
        return self._known[schedule]

    def _breaks(self, schedule: Schedule) -> bool:
        known = self._known.get(schedule)
        if known is None and time.monotonic() < self._until:
            self._asked.append(schedule)
            if len(self._asked) * _TWICE >= self._conductor.lanes:
                raise _Enough
        return bool(known)

    def _play(self) -> None:
        """Play these schedules twice each. A schedule must break the promise both times."""
        jobs = [Job(schedule) for schedule in self._asked for _ in range(_TWICE)]
        broke = dict.fromkeys(self._asked, 0)
        for run in self._conductor.play(jobs):
            self.runs += 1
            broke[run.schedule] += not run.hung and bool(_broken(run, self._names))
        self._known |= {schedule: count == _TWICE for schedule, count in broke.items()}


def _is_late(run: RealRun) -> bool:
    return run.late_ns > run.setting.ttl_ns // 2


def _broken(run: RealRun, goals: Sequence[str], surely: bool = False) -> dict[str, Verdict]:
    """Judge a run. On a machine that was too busy for it, no lock is blamed for being late."""
    if _is_late(run):
        goals = [goal for goal in goals if not of_time(goal)]
    return violations(run, goals, surely)


def _patience_ns(run: RealRun) -> int:
    """Return how long client-1 waited for the answer to its first acquire, if its only message was
    lost; 0: it was not."""
    (step, number), *more = run.injected or ((0, 0),)
    if more or step != 1 or not run.is_lost(number):
        return 0
    mine = [row for row in run.rows if row[1] == 0 and row[3] == "acquire"]
    begun = next((row[0] for row in mine if row[2] == "invoke"), 0)
    return next((row[0] - begun for row in mine if row[2] != "invoke"), 0)


def _count(tried: Tried, run: RealRun) -> None:
    tried.schedules += 1
    tried.patience_ns = max(tried.patience_ns, _patience_ns(run))
    tried.steps += sum(run.moments)
    tried.events += len(run.rows)
    known = len(tried.states)
    tried.states[shape(run.rows)] += 1
    if len(tried.states) > known:
        tried.last_new, tried.last_new_s = tried.schedules, tried.seconds
    tried.struck.update(run.struck)
    tried.covered.update(run.seen)
    tried.injected.update(pair[0] for pair in run.seen)


def hunt(
    setting: Setting,
    conductor: Callable[[], Conductor],
    seed: int,
    budget_s: float,
    tell_tried: Tell,
    inherent: bool,
    schedule: Schedule | None = None,
    look: Look | None = None,
) -> tuple[Tried, Counterexample | None]:
    """Search with real clients; see `Search.hunt`. `schedule`: play it alone, up to ten times."""
    with conductor() as made:
        search = Search(setting, made, seed, tell_tried, look)
        return search.hunt(budget_s, inherent) if schedule is None else search.replay(schedule)
