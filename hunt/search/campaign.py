"""A campaign: one hunt for each of many seeds, possibly on many machines, and their totals.

A seed's hunt is a work item. Its outcome is plain data, so that it can be written to a file and
sent between machines. It is the same on each, unless the time runs out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from fencepost.hunt.lock_error import LockError
from fencepost.hunt.search.coverage import Cell, Coverage, cells, coverage, existing, one_in
from fencepost.hunt.search.hunt import hunt
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown


@dataclass(frozen=True)
class Item:
    """A hunt with one seed, for at most `budget_s`. `depth`: search exhaustively (search.py);
    `inherent`: stop at inherent counterexamples, too (inherent.py)."""

    setting: Setting
    seed: int
    budget_s: float
    depth: int | None = None
    inherent: bool = False


@dataclass(frozen=True)
class Outcome:
    """The outcome of one seed.

    `schedule`: the minimal one as a list of integers, None without a counterexample. `broken`: the
    checkers that it violates, beginning with the one for which it was shrunk. `states`: hashes of
    the distinct histories, the same in every process. `inherent`: the faults and the checker of
    each counterexample that is inherent to the servers. `failure`: why the lock's own code, or a
    model, ended the hunt. `cells`: what faults struck (coverage.py). `clean`: the drawn schedules
    without a counterexample.
    """

    seed: int
    schedules: int
    seconds: float
    schedule: list[int] | None = None
    broken: list[str] = field(default_factory=list)
    strikes: int = 0
    story: list[str] = field(default_factory=list)
    struck: dict[str, int] = field(default_factory=dict)
    covered: list[list[str]] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    inherent: list[str] = field(default_factory=list)
    failure: str = ""
    cells: list[list[str]] = field(default_factory=list)
    clean: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def work(item: Item) -> Outcome:
    """Hunt with one seed, in this process."""
    try:
        tried, find = hunt(
            item.setting, item.seed, item.budget_s, 1, depth=item.depth, inherent=item.inherent
        )
    except (LockError, Unknown) as error:
        return Outcome(item.seed, 0, 0.0, failure=str(error))
    found: dict[str, Any] = {}
    if find is not None:
        found = {
            "schedule": find.schedule.numbers(len(item.setting.clients)),
            "broken": list(find.broken),
            "strikes": len(find.schedule.injections),
            "story": [step.words for step in find.story],
        }
    return Outcome(
        item.seed,
        tried.schedules,
        round(tried.seconds, 3),
        struck=dict(sorted(tried.injected.items())),
        covered=sorted(list(pair) for pair in tried.covered),
        states=sorted(tried.states),
        inherent=[one.words for one in tried.inherent],
        cells=sorted(list(cell) for cell in cells(tried.struck)),
        clean=0 if find is not None or item.depth is not None else tried.drawn - tried.clean_from,
        **found,
    )


@dataclass(frozen=True)
class Group:
    """The seeds whose counterexamples were shrunk to the same schedule."""

    schedule: tuple[int, ...]
    broken: tuple[str, ...]
    strikes: int
    story: tuple[str, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Merged:
    """The totals of all seeds.

    `groups`: the counterexamples, those of most seeds first, then the shortest. `rate`: schedules a
    second of one hunt. `new`: the number of seeds with a pair of a fault and the clients'
    activities that no earlier seed had shown. `inherent`: the number of seeds by counterexample
    that is inherent to the servers. `last_new`: how many seeds, in their order, had been hunted
    when the last new history had come.
    """

    seeds: int
    schedules: int
    seconds: float
    states: int
    covered: int
    new: int
    struck: dict[str, int]
    inherent: dict[str, int]
    groups: tuple[Group, ...]
    failures: tuple[tuple[int, str], ...]
    last_new: int = 0
    cells: frozenset[Cell] = frozenset()
    clean: int = 0

    @property
    def found(self) -> int:
        return sum(len(group.seeds) for group in self.groups)

    @property
    def rate(self) -> float:
        return self.schedules / self.seconds if self.seconds else 0.0


def merged(outcomes: Iterable[Outcome]) -> Merged:
    """Return the totals, which do not depend on the order of the outcomes."""
    rows = sorted(outcomes, key=lambda one: one.seed)
    groups: dict[tuple[int, ...], list[Outcome]] = {}
    states: set[int] = set()
    covered: set[tuple[str, ...]] = set()
    struck: Counter[str] = Counter()
    inherent: Counter[str] = Counter()
    struck_cells: set[Cell] = set()
    new = last_new = 0
    for number, one in enumerate(rows, 1):
        pairs = {tuple(pair) for pair in one.covered}
        new += bool(pairs - covered)
        covered |= pairs
        known = len(states)
        states.update(one.states)
        last_new = number if len(states) > known else last_new
        struck_cells.update((fault, op, met) for fault, op, met in one.cells)
        struck.update(one.struck)
        inherent.update(set(one.inherent))
        if one.schedule is not None:
            groups.setdefault(tuple(one.schedule), []).append(one)
    made = [
        Group(
            schedule, tuple(mine[0].broken), mine[0].strikes, tuple(mine[0].story),
            tuple(one.seed for one in mine),
        )
        for schedule, mine in groups.items()
    ]  # fmt: skip
    made.sort(key=lambda group: (-len(group.seeds), group.strikes, group.schedule))
    return Merged(
        len(rows),
        sum(one.schedules for one in rows),
        sum(one.seconds for one in rows),
        len(states),
        len(covered),
        new,
        dict(sorted(struck.items())),
        dict(sorted(inherent.items())),
        tuple(made),
        tuple((one.seed, one.failure) for one in rows if one.failure),
        last_new,
        frozenset(struck_cells),
        sum(one.clean for one in rows),
    )


def covered(setting: Setting, total: Merged) -> Coverage:
    """Return the coverage of all seeds. It supports a bound only if none found anything."""
    clean = 0 if total.found or total.inherent else total.clean
    return coverage(
        total.cells,
        existing(setting),
        histories=total.states,
        last_new=total.last_new,
        of=total.seeds,
        unit="seed",
        clean=clean,
        one_in=one_in(clean),
    )
