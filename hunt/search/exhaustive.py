"""The exhaustive search: every schedule with up to a number of injections, except for known states.

It proceeds by depth: one injection into the undisturbed run; then another, later injection into
each of those runs; and so on. The set-up is the default one (all clients ask at once, holds are
short), because the head of a schedule has too many settings to try all.

The search omits an injection that leads to a known state (state_hash.py): either the state without
the injection, because the fault found no target; or a state to which the same injection has led at
an earlier step, because nothing happened in between that it could change. Such a run stops at once.
States are compared only among runs that follow one schedule by one action, so the omissions do not
depend on which process tries which batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.run import Run
from fencepost.hunt.search.state_hash import Seen, state
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event

# Number of actions of a batch.
_BATCH = 24


@dataclass(frozen=True)
class Every:
    """The runs of one batch: each of these actions, at each step after the last injection of
    `after`.

    `bare`: also the schedule `after` itself. `without`: the numbers of actions to leave out.
    """

    after: Schedule
    first: int
    last: int
    bare: bool = False
    without: frozenset[int] = frozenset()


def batches(
    after: Schedule, actions: Sequence[Action], without: frozenset[int] = frozenset()
) -> Iterator[Every]:
    """Yield the batches that add one injection to a schedule."""
    bare = not after.injections
    if bare and not actions:
        yield Every(after, 1, 0, bare)
    for first in range(1, len(actions) + 1, _BATCH):
        last = min(first + _BATCH - 1, len(actions))
        yield Every(after, first, last, bare and first == 1, without)


class Probe(Run):
    """A run that tests whether its last injection leads to a known state.

    `known`: the states to which such injections have led; the run adds its own. The run ends early
    if its state is known.
    """

    def __init__(
        self, setting: Setting, schedule: Schedule, actions: Sequence[Action], known: set[int]
    ) -> None:
        self._seen = Seen(len(setting.clients))
        super().__init__(setting, schedule, actions, self._seen)
        self._last = schedule.injections[-1][0]
        self._known = known
        self._merges = mergeable(setting)
        self.is_known = False

    def execute(self) -> Run:
        super().execute()
        # The fault found no target, so the run equals the one without it.
        self.is_known = self.is_known or self.missed
        return self

    def _next(self) -> int:
        step = self.world.step
        # Decide at each step until the injection, to record observations.
        return step + 1 if self._merges and step <= self._last else super()._next()

    def decide(self, event: Event | None) -> int:
        step = self.world.step
        if step > self._last + 1 or not self._merges:
            return super().decide(event)
        self._seen.step(self, event)
        if step < self._last:
            super().decide(event)
        elif step == self._last:
            before = state(self, self._seen, event)
            super().decide(event)
            after = state(self, self._seen, event)
            self.is_known = after == before or after in self._known
            if after == before:
                self.world.over = True
            self._known.add(after)
        else:
            due = super().decide(event)
            # The same injection one step later makes no difference if it leads to this state.
            self._known.add(state(self, self._seen, event))
            if self.is_known:
                self.world.over = True
            return due
        return step + 1


def mergeable(setting: Setting) -> bool:
    """Return whether state_hash.py covers everything that a client or server observes."""
    return not setting.outside and setting.store != "server"


def probes(setting: Setting, actions: Sequence[Action], every: Every) -> Iterator[Run]:
    """Yield the runs of a batch, for execution in this order. A run with a known state ends
    early."""
    bare = Run(setting, every.after, actions)
    if every.bare:
        yield bare
    else:
        bare.execute()
    begin = every.after.injections[-1][0] if every.after.injections else 0
    for number in sorted({*range(every.first, every.last + 1)} - every.without):
        known: set[int] = set()
        for step in range(begin + 1, bare.worked_step + 1):
            schedule = replace(every.after, injections=(*every.after.injections, (step, number)))
            yield Probe(setting, schedule, actions, known)
