"""Compares a counterexample with a reference lock: does it show a defect of the user's lock?

A jump of a server's clock, or a crash without persistence, breaks every lock on one Redis: no
client can prevent it. So the faults of a counterexample are played against a lock of fencepost's
own on the same servers. If they break the same promise of that lock, the counterexample is
*inherent* to the servers, and the search continues with the faults that the reference survives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from fencepost.hunt.faults.registry import family_of, name_of, table
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.run import Run
from fencepost.hunt.search.batch import Drawn, Searcher
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown
from fencepost.nemesis.families import FAMILIES

_BATCHES, _FEWER = 8, 4
"""The number of batches of schedules that the reference must survive; fewer if it opens its own
connections, because their runs take several times as long."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of a counterexample with a reference lock.

    `checker`: the violated one. `lock`: the reference. `inherent`: the faults that break it too, by
    their names for --faults; none if it survives those of the counterexample. `schedules`: the
    number of schedules that it was tried with. `story`: the counterexample's, a line each.
    """

    checker: str
    lock: str
    inherent: tuple[str, ...]
    schedules: int
    story: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The inherent faults and the checker in a phrase."""
        return f"{' and '.join(self.inherent)}: {self.checker}"

    def sentence(self, servers: str) -> str:
        """Return the result as a sentence. `servers`: the servers in words."""
        if not self.schedules:
            return "Yours: it needs no fault."
        if not self.inherent:
            return (
                f"Yours: `{self.lock}`, fencepost's own lock, survives these kinds of faults on "
                f"{servers} ({self.schedules:,} schedules)."
            )
        return (
            f"Inherent: on {servers}, {self.checker} is violated by {' and '.join(self.inherent)} "
            f"whatever the client does. `{self.lock}`, fencepost's own lock, breaks, too."
        )


def compare(run: Run, checker: str, reference: Setting, seed: int | str) -> Comparison:
    """Compare the run of a counterexample, which violates `checker`, with a reference lock."""
    return Reference(reference, seed).compared(checker, used_in(run))


def compared(
    reference: Setting, checker: str, used: Collection[str], seed: int | str
) -> Comparison:
    """Compare a violation of `checker` under these faults with a reference lock."""
    return Reference(reference, seed).compared(checker, used)


def used_in(run: Run) -> set[str]:
    """Return the faults of a run, by their names for --faults."""
    actions = table(run.setting)
    return {name_of(actions[number - 1]) for _, number in run.injected}


def named(actions: Sequence[Action], names: Collection[str]) -> Iterator[int]:
    """Yield the numbers of the actions with these names."""
    for number, action in enumerate(actions, 1):
        if name_of(action) in names:
            yield number


class Reference:
    """Tries the reference lock with some faults, each combination once."""

    def __init__(self, setting: Setting, seed: int | str) -> None:
        self._setting = setting
        self._seed = seed
        self._actions = table(setting)
        # Whether faults break a promise, and after how many schedules.
        self._known: dict[tuple[str, frozenset[str]], tuple[bool, int]] = {}

    def compared(self, checker: str, used: Collection[str]) -> Comparison:
        """Compare a violation of `checker` under these faults."""
        if not used:
            return Comparison(checker, self._setting.lock, (), 0)
        tried = [frozenset({one}) for one in used]
        found = {one for one in used if self.breaks(checker, {one})}
        if not found and len(used) > 1:
            tried.append(frozenset(used))
            if self.breaks(checker, used):
                # They break it together. Without a fault of the servers the others do not.
                found = {min(used, key=lambda one: (not _forgets(one), one))}
        schedules = sum(self._known[checker, names][1] for names in tried)
        return Comparison(checker, self._setting.lock, tuple(sorted(found)), schedules)

    def breaks(self, checker: str, names: Collection[str]) -> bool:
        """Return whether the reference breaks with these faults alone."""
        key = checker, frozenset(names)
        if key not in self._known:
            self._known[key] = self._try(checker, names)
        return self._known[key][0]

    def _try(self, checker: str, names: Collection[str]) -> tuple[bool, int]:
        others = {name_of(action) for action in self._actions} - set(names)
        without = frozenset(named(self._actions, others))
        searcher, schedules = Searcher(replace(self._setting, goals=(checker,))), 0
        unknown: Unknown | None = None
        for number in range(_FEWER if self._setting.outside else _BATCHES):
            try:
                made = searcher.batch(Drawn(f"{self._seed}/reference", number, (), without))
            except Unknown as error:
                unknown = error  # this batch shows nothing
                continue
            schedules += made.tried
            if made.found is not None:
                return not made.failure, schedules
        if not schedules and unknown is not None:
            raise unknown
        return False, schedules


def _forgets(name: str) -> bool:
    family = FAMILIES.get(family_of(name))
    return family is not None and family.forgets and not name.endswith(":client")
