"""Searches: draws, runs and judges schedules until one breaks a promise or the time is up.

Drawn schedules come in rounds of batches. Between rounds the search learns weights of faults: a
kind whose schedules showed more new behaviour gets more of the next round. With a user lock, a
batch of simple schedules (single.py) comes before each of the first of these batches. An exhaustive
search has a round for each depth (exhaustive.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fencepost.hunt.faults.registry import table
from fencepost.hunt.search.batch import Batch, Covered, Drawn, Simple, Work, begins_simply
from fencepost.hunt.search.exhaustive import batches
from fencepost.hunt.search.inherent import Comparison
from fencepost.hunt.search.pool import Do, MakePool, local
from fencepost.hunt.search.twin import Twin
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting

# Number of batches of the first round and of a late one.
_FIRST_ROUND, _ROUND = 4, 64
_LEAST_WEIGHT = 0.3

Tell = Callable[["Tried"], None]


@dataclass
class Tried:
    """The totals of a hunt. `seconds` of real time, `cpu_s` of the processor time of all its
    processes; `steps` and `events` of all runs together.

    `states`: how many schedules showed each distinct history (batch.py); `last_new`: how many had
    been tried, after `last_new_s`, when the last new one had come. `clean_from`: how many had been
    tried when the faults of the last inherent counterexample were left out.

    With real clients (hunt/live), `late` schedules met a busy machine. `hung` ones were not judged,
    because an op did not end, and `unasked` ones, because kept programs sent nothing. `dropped`
    violations did not come again each time. `patience_ns`: how long a client waited for an answer
    that was lost; 0: unknown.

    `inherent`: the earlier counterexamples that are inherent to the servers (inherent.py).

    For an exhaustive search, `depth` is the number of injections up to which all schedules were
    tried, and `known` counts the schedules that led to known states; for another search `depth` is
    None.
    """

    schedules: int = 0
    steps: int = 0
    events: int = 0
    known: int = 0
    depth: int | None = None
    states: Counter[int] = field(default_factory=Counter)
    last_new: int = 0
    last_new_s: float = 0.0
    clean_from: int = 0
    simple: int = 0
    simple_batches: int = 0
    all_simple: bool = False
    struck: set[Covered] = field(default_factory=set)
    covered: set[Covered] = field(default_factory=set)
    injected: Counter[str] = field(default_factory=Counter)
    weights: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    cpu_s: float = 0.0
    found: tuple[Schedule, tuple[str, ...]] | None = None
    inherent: list[Comparison] = field(default_factory=list)
    failure: str = ""
    late: int = 0
    hung: int = 0
    unasked: int = 0
    dropped: int = 0
    patience_ns: int = 0

    @property
    def drawn(self) -> int:
        """How many schedules were drawn or enumerated, and are no simple ones."""
        return self.schedules - self.simple

    def add(self, made: Batch) -> None:
        self.schedules += made.tried
        self.steps += made.steps
        self.events += made.events
        self.known += made.known
        self.simple += made.tried if made.simple is not None else 0
        self.cpu_s += made.cpu_s
        known = len(self.states)
        self.states.update(made.states)
        if len(self.states) > known:
            self.last_new = self.schedules
        self.struck |= made.struck
        self.covered.update(made.covered)
        self.injected.update(made.injected)
        if made.found is not None:
            self.found, self.failure = made.found, made.failure
        elif made.simple is not None:
            self.simple_batches = made.simple + 1
            self.all_simple |= made.last


class _Budget:
    """Adds up batches until a counterexample is found or the budget is used up."""

    def __init__(
        self,
        do: Do,
        budget_s: float,
        most: int | None,
        tell: Tell,
        tried: Tried | None,
        twin: Twin | None = None,
    ) -> None:
        self._do = do
        self._budget_s = budget_s
        self._most = most
        self._tell = tell
        self._twin = twin
        self.tried = tried or Tried()
        self.tried.found = None
        self._begun = time.monotonic() - self.tried.seconds

    @property
    def over(self) -> bool:
        tried = self.tried
        tried.seconds = time.monotonic() - self._begun
        if tried.last_new == tried.schedules:
            tried.last_new_s = tried.seconds
        enough = self._most is not None and tried.schedules >= self._most
        return tried.found is not None or enough or tried.seconds >= self._budget_s

    def spend(self, works: Iterable[Work], kept: list[Schedule] | None = None) -> bool:
        """Try this work; return whether it was completed. `kept` gets the schedules with injections
        that did not lead to known states."""
        over = False
        for made in self._do(works):
            self.tried.add(made)
            if self._twin is not None:
                self._twin.take(made.checked, time.monotonic() - self._begun)
            if kept is not None:
                kept += [one for one in made.kept if one.injections]
            if over := self.over:
                break
        self._tell(self.tried)
        return not over


def search(
    setting: Setting,
    seed: int,
    budget_s: float,
    processes: int | None = None,
    tell: Tell = lambda tried: None,
    most: int | None = None,
    make_pool: MakePool | None = None,
    without: frozenset[int] = frozenset(),
    before: Tried | None = None,
) -> Tried:
    """Draw and try schedules for at most `budget_s` seconds, and at most `most` schedules.

    The counterexample does not depend on the number of processes unless the time runs out.
    `without`: the numbers of actions to leave out; `before`: the totals so far. Raises Unknown if a
    run cannot be repeated (twin.py).
    """
    with (make_pool or local(processes))(setting) as do, Twin(setting) as twin:
        budget = _Budget(do, budget_s, most, tell, before, twin)
        tried, first = budget.tried, 0
        tried.all_simple |= not begins_simply(setting)
        while not budget.over:
            count = min(_ROUND, max(_FIRST_ROUND, first))
            weights = tuple(sorted(tried.weights.items()))
            drawn = [
                Drawn(seed, number, weights, without) for number in range(first, first + count)
            ]
            budget.spend(_with_simple(drawn, tried, without))
            first += count
            tried.weights = learned_weights(tried)
        if tried.found is None:
            twin.finish()
    return tried


def _with_simple(drawn: Iterable[Drawn], tried: Tried, without: frozenset[int]) -> Iterator[Work]:
    """Yield these batches, each after a batch of simple schedules while there are some left."""
    number = tried.simple_batches
    for one in drawn:
        if not tried.all_simple:
            yield Simple(number, without)
            number += 1
        yield one


def search_all(
    setting: Setting,
    depth: int,
    budget_s: float,
    processes: int | None = None,
    tell: Tell = lambda tried: None,
    make_pool: MakePool | None = None,
    without: frozenset[int] = frozenset(),
    before: Tried | None = None,
) -> Tried:
    """Try every schedule with up to `depth` injections, within the time budget."""
    actions = table(setting)
    with (make_pool or local(processes))(setting) as do:
        budget = _Budget(do, budget_s, None, tell, before)
        tried = budget.tried
        tried.depth, parents = 0, [Schedule()]
        for number in range(1, depth + 1):
            kept: list[Schedule] = []
            works = (work for parent in parents for work in batches(parent, actions, without))
            done = budget.spend(works, kept if number < depth else None)
            if not done and tried.found is None:
                break
            tried.depth, parents = number, kept
            if budget.over:
                break
    return tried


def learned_weights(tried: Tried) -> dict[str, float]:
    """Return weights of the kinds: new pairs that each has shown per injection."""
    new = Counter(pair[0] for pair in tried.covered)
    rates = {kind: new[kind] / count for kind, count in tried.injected.items() if count}
    mean = sum(rates.values()) / len(rates) if rates else 1.0
    return {kind: max(_LEAST_WEIGHT, min(3.0, rate / mean)) for kind, rate in rates.items()}
