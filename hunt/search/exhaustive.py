"""The exhaustive search: every schedule with up to so many strikes, known states left out.

Depth by depth: what strikes the undisturbed run once; then what strikes each of those runs once
more, later; and so on. The set-up is the usual one (all ask at once, holds are short), because the
head of a schedule has more settings than there is time for.

An injection is left out where it leads to a state that is known (state_hash.py): to the one that
the run was in anyway, because the fault found nothing to act on; or to one that the same injection
has led to at an earlier step, because nothing that it could change was done in between. What is
left out is stopped at once. A state is known among what follows one schedule by one action, so that
what is left out does not depend on which process tries which batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fencepost.hunt.faults.action import Action
from fencepost.hunt.run import Run
from fencepost.hunt.search.state_hash import Seen, state
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event

# Actions of a batch.
_BATCH = 24


@dataclass(frozen=True)
class Every:
    """What one batch tries: each of these actions, at each step after the last strike of `after`.
    `bare`: that schedule itself, too."""

    after: Schedule
    first: int
    last: int
    bare: bool = False


def batches(after: Schedule, actions: Sequence[Action]) -> Iterator[Every]:
    """All that may strike after a schedule."""
    bare = not after.injections
    if bare and not actions:
        yield Every(after, 1, 0, bare)
    for first in range(1, len(actions) + 1, _BATCH):
        last = min(first + _BATCH - 1, len(actions))
        yield Every(after, first, last, bare and first == 1)


class Probe(Run):
    """A run whose last strike is tried. `known`: the states that such strikes have led to, to which
    those of this one are added. It ends early where this one leads to a state that is known."""

    def __init__(
        self, setting: Setting, schedule: Schedule, actions: Sequence[Action], known: set[int]
    ) -> None:
        self._seen = Seen(len(setting.clients))
        super().__init__(setting, schedule, actions, self._seen)
        self._last = schedule.injections[-1][0]
        self._known = known
        self._merges = mergeable(setting)
        self.is_known = False

    def carry_out(self) -> Run:
        super().carry_out()
        # It found nothing to strike, and so the run is that without it.
        self.is_known = self.is_known or self.missed
        return self

    def _next(self) -> int:
        step = self.world.step
        # Up to then each step is heard of.
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
                self.end()
            self._known.add(after)
        else:
            due = super().decide(event)
            # Where this one strikes a step later, and that makes no difference, it is known.
            self._known.add(state(self, self._seen, event))
            if self.is_known:
                self.end()
            return due
        return step + 1


def mergeable(setting: Setting) -> bool:
    """Whether all that a client or server sees goes through what state_hash.py covers."""
    return not setting.outside and setting.store != "server"


def probes(setting: Setting, actions: Sequence[Action], every: Every) -> Iterator[Run]:
    """The runs of a batch, to be carried out in this order. One that is known ends early."""
    bare = Run(setting, every.after, actions)
    if every.bare:
        yield bare
    else:
        bare.carry_out()
    begin = every.after.injections[-1][0] if every.after.injections else 0
    for number in range(every.first, every.last + 1):
        known: set[int] = set()
        for step in range(begin + 1, bare.worked_step + 1):
            schedule = replace(every.after, injections=(*every.after.injections, (step, number)))
            yield Probe(setting, schedule, actions, known)
