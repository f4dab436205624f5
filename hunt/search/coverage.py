"""The coverage of a hunt without a counterexample, in numbers with a meaning.

- *Cells*: a fault, the op of a client that it struck, and the message that was due. The cells that
  exist are found by trying: each fault at each kind of moment of some undisturbed runs, once.
- *Histories* that differ in more than times and values, and when the last new one came. By Good's
  estimate (I. J. Good, Biometrika 40, 1953; for fuzzing: M. Böhme, ACM TOSEM 27(2), 2018) the next
  schedule shows a new one with the probability of the share of those that were seen once.
- *A bound*: schedules that break the lock and make up a share p of those drawn are missed by n
  independent draws with probability (1-p)^n. At 95 % that gives p = 1 - 0.05^(1/n), about 3/n: the
  rule of three (Hanley and Lippman-Hand, JAMA 249, 1983). The weights of faults change during a
  hunt; then p is the mean share, because the product of the (1-p_i) is at most (1-p)^n.

An exhaustive search draws nothing, so it has no bound: it has tried all schedules up to a depth. It
counts states (state_hash.py). A drawn search does not: a state includes its time, so that nearly
every injection leads to a new one (1,557 of 1,566 in 600 schedules of Redlock), and hashing them
makes a run three times as long.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from fencepost.hunt.faults.registry import table
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.run import Run
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.search.exhaustive import mergeable
from fencepost.hunt.search.inherent import named
from fencepost.hunt.search.search import Tried
from fencepost.hunt.sim.due import struck
from fencepost.hunt.sim.schedule import EACH, HEAD, Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import Event

CONFIDENCE = 0.95
_HEADS = 6
"""Undisturbed runs whose moments are tried: the usual one, and some with other set-ups."""
_NAMED = 8
_DUE = {"": "a step of its code", "wake": "a timer"}

Cell = tuple[str, str, str]
"""A fault, an op, and the message (or `wake`, or nothing) that was due."""


@dataclass(frozen=True)
class Coverage:
    """What was covered.

    `struck` of `existing` cells; `missed`: the others, in words. `histories`: distinct ones;
    `once`: those that a single schedule showed; `last_new`: the number of the schedule or the seed
    (`unit`) by which the last new one had come, `of` how many, and `since_s` the time since then.
    `one_in`: an error that one schedule in this many shows would have been found with 95 %, after
    `clean` schedules without a counterexample. `states`: the schedules of an exhaustive search
    that led to a state of their own (state_hash.py); `known`: those that led to another's. None
    where it is not known, or means nothing.
    """

    struck: int
    existing: int
    missed: list[str]
    cells: list[list[str]]
    histories: int
    last_new: int
    of: int
    unit: str = "schedule"
    since_s: float | None = None
    once: int | None = None
    clean: int = 0
    one_in: int | None = None
    states: int | None = None
    known: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def sentences(self) -> list[str]:
        """Describe it, a sentence each."""
        found = []
        if self.existing:
            found.append(
                f"struck: {self.struck:,} of {self.existing:,} combinations of a fault, an op and "
                "a message that exist"
            )
        if self.missed:
            more = len(self.missed) - _NAMED
            named = [*self.missed[:_NAMED], *([f"and {more:,} more"] if more > 0 else [])]
            found.append(f"never struck: {'; '.join(named)}")
        if self.states is not None:
            found.append(
                f"states: {self.states:,} schedules led to a new state, and {self.known:,} to a "
                "known one"
            )
        if self.histories:
            found.append(f"histories: {self._histories()}")
        if self.one_in is not None:
            found.append(
                f"bound: an error that one such schedule in {self.one_in:,} shows would have been "
                f"found with {100 * CONFIDENCE:.0f} %; a rarer one may exist, and one that no such "
                "schedule shows"
            )
        return found

    def _histories(self) -> str:
        found = f"{self.histories:,} distinct (ignoring times); the last new one by {self.unit} "
        found += f"{self.last_new:,} of {self.of:,}"
        if self.since_s is not None:
            found += f", {self.since_s:.1f} s before the end"
        if self.once is not None and self.of:
            found += (
                f"; the next schedule shows a new one with about {100 * self.once / self.of:.2g} %"
            )
        return found


def one_in(clean: int) -> int | None:
    """Return the N for which an error that one schedule in N shows would have been found among this
    many with 95 %; None if there are too few schedules."""
    if clean < 1:
        return None
    share = 1 - float((1 - CONFIDENCE) ** (1 / clean))
    return int(1 / share)


def cells(found: Iterable[Sequence[str]]) -> set[Cell]:
    """Return the cells of what runs struck (Run.struck)."""
    return {(_fault(kind, way), op or "start", met) for kind, way, met, *ops in found for op in ops}


def _fault(kind: str, way: str) -> str:
    if way in ("client", "server"):
        return f"{kind}:{way}"
    return kind if "/" in kind or way in ("message", "one") else f"{kind}/{way}"


def words(cell: Cell) -> str:
    fault, op, met = cell
    return f"{fault} in {op} before {_DUE.get(met, f'a {met}')}"


class _Moments(Run):
    """An undisturbed run that notes the first step of each kind of moment: the ops and the message
    that an action would strike, and the client that the action is about, if any."""

    def __init__(self, setting: Setting, schedule: Schedule, actions: Sequence[Action]) -> None:
        super().__init__(setting, schedule, actions)
        self.kinds: dict[tuple[bool, tuple[str, ...]], tuple[int, int | None]] = {}

    def _next(self) -> int:
        return min(self.world.step + 1, super()._next())

    def decide(self, event: Event | None) -> int:
        if not self._being_created and not self._no_more_faults:
            for client in (None, *range(len(self.clients))):
                ops, met = struck(self.clients, client, event)
                kind = client is not None, (met, *ops)
                self.kinds.setdefault(kind, (self.world.step, client))
        return min(super().decide(event), self.world.step + 1)


def existing(setting: Setting, without: Collection[int] = ()) -> set[Cell]:
    """Return the cells that one injection into an undisturbed run can strike."""
    actions = table(setting)
    ways: dict[int | None, dict[tuple[str, str], int]] = {}
    for number, action in enumerate(actions, 1):
        if number not in without:
            ways.setdefault(action.client, {}).setdefault((action.kind, action.way), number)
    found: set[Cell] = set()
    tried: set[tuple[bool, tuple[str, ...]]] = set()
    for head in _heads(setting, actions) if ways else ():
        moments = _Moments(setting, Schedule(head), actions)
        moments.execute()
        for kind, (step, client) in moments.kinds.items():
            if kind not in tried:
                tried.add(kind)
                for number in ways.get(client, {}).values():
                    found |= _tried(setting, Schedule(head, ((step, number),)), actions)
    return found


def _tried(setting: Setting, schedule: Schedule, actions: Sequence[Action]) -> set[Cell]:
    run = Run(setting, schedule, actions)
    with suppress(LockError, Unknown):  # it struck before it failed
        run.execute()
    return cells(run.struck)


def _heads(setting: Setting, actions: Sequence[Action]) -> Iterator[tuple[int, ...]]:
    yield ()
    # With every client extending its lease.
    yield (0,) * HEAD + (0, 0, 1, 1)[:EACH] * len(setting.clients)
    drawer, random = Drawer(setting, actions, 1, {}), Random("coverage")
    for _ in range(_HEADS - 2):
        yield drawer.draw(random)[0].head


def coverage(found: Collection[Cell], exist: Collection[Cell], **numbers: Any) -> Coverage:
    """Return the coverage of a hunt that struck these cells, of those that exist. `numbers`: the
    other fields of Coverage."""
    every = {*found, *exist}
    missed = [words(cell) for cell in sorted(every - {*found})]
    return Coverage(
        len(found), len(every), missed, [list(cell) for cell in sorted(found)], **numbers
    )


def of_hunt(setting: Setting, tried: Tried, drawn: bool) -> Coverage:
    """Return the coverage of a hunt that found nothing. `drawn`: its schedules were drawn at
    random, and not enumerated."""
    actions = table(setting)
    without = {n for one in tried.inherent for n in named(actions, one.inherent)}
    clean = tried.drawn - tried.clean_from
    # With real clients it is not known which combinations exist.
    found = set[Cell]() if setting.live else cells(tried.struck)
    return coverage(
        found,
        found if setting.live else existing(setting, without),
        histories=len(tried.states),
        last_new=tried.last_new,
        of=tried.schedules,
        since_s=round(tried.seconds - tried.last_new_s, 3),
        once=sum(count == 1 for count in tried.states.values()) if drawn else None,
        clean=clean,
        one_in=one_in(clean) if drawn else None,
        states=None if drawn or not mergeable(setting) else tried.schedules,
        known=None if drawn or not mergeable(setting) else tried.known,
    )
