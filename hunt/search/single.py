"""The simple schedules of a user lock: one fault of one client, at each place of its ops.

Most defects of a lock need at most one fault, if it strikes between the right two messages of an op
while another client is about to ask. Schedules that are drawn at random meet such a place rarely:
an op on asyncio takes a hundred steps, and the others must ask at the right time. So a hunt of a
user lock tries some set-ups (set_ups.py), first without a fault, then with each fault of client-1
and of its messages at the places of client-1's ops. All clients run the same code, so one of them
is enough. Faults of servers are left to the other schedules: most break a promise whatever the
client does.

A client acts on the messages that it has received, so its places are the gaps between them.
The middle of each gap comes first, the other steps of a gap later: a clock may be read there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import cast

from fencepost.hunt.faults.registry import SIMULATED, family_of
from fencepost.hunt.faults.simulated import Action, Simulated
from fencepost.hunt.intercept.duplex import Down, Up
from fencepost.hunt.intercept.stream import Stream, Talk
from fencepost.hunt.run import Run
from fencepost.hunt.search.set_ups import set_ups
from fencepost.hunt.sim.network import Request
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event

_OPS = {"release": 1, "extend": 1, "work": 2, "acquire": 2}
"""The ops of a lock, those that most often show a defect first, and how many of each. While a
client works, its lock may renew the lease; its second acquire opens no connections."""
_RANKS = 6
_GAPS = 8
"""How many gaps of an op have a rank more than others: the ops of a lock on several servers have
many, and most are alike."""

Injections = tuple[tuple[int, int], ...]
Op = list[tuple[int, bool]]
"""The steps of an op, each with whether a message of the client is due."""


class _Steps(Run):
    """An undisturbed run that notes the steps of client-1 in its ops."""

    def execute(self) -> Run:
        self.ops: dict[str, list[Op]] = {}
        self._op: tuple[str, Op] = ("", [])
        return super().execute()

    def _next(self) -> int:
        return self.world.step + 1

    def decide(self, event: Event | None) -> int:
        if not self._being_created and not self._no_more_faults:
            self._note(event)
        super().decide(event)
        return self.world.step + 1

    def _note(self, event: Event | None) -> None:
        client, world = self.clients[0], self.world
        if client.activity != self._op[0]:
            self._op = client.activity, []
            self.ops.setdefault(client.activity, []).append(self._op[1])
        message = isinstance(event, Request) and event.link.client is client and _counts(event)
        here = world.running is not None and world.running.node if event is None else event.node
        if message or here is client:
            self._op[1].append((world.step, message))


def _counts(message: Request) -> bool:
    """Whether a message concerns more than the connection itself."""
    if isinstance(message, Talk | Up):
        return any(map(message.link.session.is_about_data, message.command))
    if isinstance(message, Down) and message.about is not None:
        return cast(Stream, message.link).session.is_about_data(message.about)
    return True


def single(setting: Setting, actions: Sequence[Action]) -> list[Schedule]:
    """Return the simple schedules, the most telling first."""
    heads = list(set_ups(setting))
    runs = [_Steps(setting, Schedule(head), actions) for head in heads]
    for run in runs:
        run.execute()
    found = dict.fromkeys(map(Schedule, heads))
    kinds = _kinds(actions)
    for rank in range(_RANKS):
        for kind in kinds:
            for run in runs:
                for places in _of(run, kind):
                    for nth, number in enumerate(kind.numbers):
                        for steps in places.get(rank - nth // kind.at_once, ()):
                            injections = tuple((step, number) for step in steps)
                            found[Schedule(run.schedule.head, injections)] = None
    return list(found)


Places = dict[int, list[tuple[int, ...]]]
"""The places of an action in an op, by rank: the steps at which it is injected, once or again."""


def _of(run: _Steps, kind: _Kind) -> Iterator[Places]:
    """Yield the places of a kind of actions in each op of a run."""
    for f, count in _OPS.items():
        for op in run.ops.get(f, [])[:count]:
            if kind.of_messages:
                yield _at_messages(op, len(run.servers))
            else:
                yield _in_gaps(op, kind.in_a_call)


def _in_gaps(op: Op, in_a_call: bool) -> Places:
    """Return the places between the messages of an op: the middle of each gap first, then its
    ends, then others. `in_a_call`: also while a message is under way."""
    gaps = [
        _spread([step for step, _ in steps])
        for message, steps in groupby(op, lambda one: one[1])
        if not message
    ]
    first, found = set(_spread(range(len(gaps)), _GAPS)), Places()
    for number, gap in enumerate(gaps):
        for rank, step in enumerate(gap, 0 if number in first else 1):
            found.setdefault(rank, []).append((step,))
    if in_a_call:
        found.setdefault(0, []).extend((step,) for step, message in op if message)
    return found


def _at_messages(op: Op, servers: int) -> Places:
    """Return the places at the messages of an op. A fault of one message breaks little on several
    servers: there, those of a majority's successive messages come first. (An action on a message
    waits for the next one.)"""
    majority = servers // 2 + 1
    messages = [step for step, message in op if message]
    several = [tuple(range(step, step + majority)) for step in messages]
    return {0: several} | ({2: [(step,) for step in messages]} if majority > 1 else {})


def _spread(steps: Sequence[int], most: int = _RANKS) -> list[int]:
    """Return some of these steps: the middle, both ends, then steps halfway between others."""
    last = len(steps) - 1
    places = [last // 2, 0, last]
    places += [last * part // 8 for part in (2, 6, 1, 3, 5, 7)]
    return [steps[place] for place in list(dict.fromkeys(places))[:most]] if steps else []


@dataclass(frozen=True)
class _Kind:
    """The numbers of the actions of a kind on client-1, or on a message, the simplest first.
    `in_a_call`: they meet a call of the lock. `at_once`: how many have the same rank."""

    of_messages: bool
    in_a_call: bool
    numbers: list[int] = field(default_factory=list)

    @property
    def at_once(self) -> int:
        return 2 if self.of_messages else 1


def _kinds(actions: Sequence[Action]) -> list[_Kind]:
    """Return the kinds of actions on client-1 or on a message: first those by which it acts late,
    then those by which its messages are late."""
    found: dict[str, _Kind] = {}
    for number, action in enumerate(actions, 1):
        family = _family(action.kind)
        if family.messages or action.client == 0:
            found.setdefault(action.kind, _Kind(family.messages, family.in_a_call)).numbers.append(
                number
            )
    kinds = sorted(found, key=lambda kind: (not _family(kind).slows, not _family(kind).late))
    return [found[kind] for kind in kinds]


def _family(kind: str) -> Simulated:
    return SIMULATED[family_of(kind)]
