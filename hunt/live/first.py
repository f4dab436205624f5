"""The schedules with which a search with real clients begins: simple ones, in order.

A schedule takes real time here, so a search plays far fewer of them than a simulation. Most
defects need at most one fault, if it strikes the right message while another client is about to
ask. So the search first tries some set-ups without a fault, then each fault of client-1 and of a
message at each message of client-1, in one set-up after the other. The clients run the same
program, so one of them is enough. Faults of the servers come later: they often break a promise
whatever the client does.

Four kinds of schedules that a search would hardly draw are tried as well. In one, the successive
messages of a majority have the same fault, because one message of several servers decides nothing:
so a request of client-1, or a renewal, finds no quorum in time. In the second, the cluster splits
in two, so that each client reaches other servers. Both are left out where all servers have one
state. In the third, client-1 is cut off for longer than its lease while it waits: its lease ends,
or it continues with another session before the servers have ended the first. In the fourth,
client-1 stalls briefly, and soon after that past its lease: if it counts its lease from an answer
that it read late, it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fencepost.hunt.faults.partition import OUTAGE, SPLIT
from fencepost.hunt.faults.registry import SIMULATED, family_of
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.search.set_ups import (
    Head,
    hurried,
    long_hold,
    overtaken,
    renewing,
    set_ups,
    waiting,
)
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting

_FEW = 2
"""How many set-ups the other actions of a kind get: the first ones."""
_TWICE = 2
_MORE = 4
"""Messages of client-1 beyond those of the undisturbed run: renewals, and second attempts."""


def simple(setting: Setting, actions: Sequence[Action], messages: int) -> Iterator[Schedule]:
    """Yield the first schedules of a search. `messages`: those of client-1 in the undisturbed
    run."""
    long, *others = set_ups(setting)
    # A message that is late past a lease shows most in the second of these.
    heads, clients = list(dict.fromkeys((long, overtaken(setting), *others))), len(setting.clients)
    yield from map(Schedule, heads)
    yield from _outages(setting, actions, messages)
    if not MODELS[setting.model].outage:
        yield from _bursts(setting, actions, messages)
        yield from _splits(setting, actions, messages)
    for head, numbers in _passes(actions, heads):
        for place in range(messages + _MORE):
            for number in numbers:
                yield Schedule(head, ((1 + place * clients, number),))
    yield from _stalls(setting, actions, messages)


def _stalls(setting: Setting, actions: Sequence[Action], messages: int) -> Iterator[Schedule]:
    """Yield schedules in which client-1 stalls twice during a long hold: briefly at a message, and
    past its lease at one of the next two."""
    stalls = [
        number
        for number, action in enumerate(actions, 1)
        if action.client == 0 and SIMULATED[family_of(action.kind)].slows
    ]
    if len(stalls) < _TWICE:
        return
    longest, shortest = stalls[0], stalls[-1]
    head, clients = long_hold(setting), len(setting.clients)
    for place in range(messages + _MORE):
        for after in (1, 2):
            first, second = 1 + place * clients, 1 + (place + after) * clients
            yield Schedule(head, ((first, shortest), (second, longest)))


def _outages(setting: Setting, actions: Sequence[Action], messages: int) -> Iterator[Schedule]:
    """Yield schedules in which client-1 is cut off for longer than its lease, from a message of the
    first half on: while it waits, or asks."""
    every = enumerate(actions, 1)
    outages = [n for n, action in every if action.way == OUTAGE and action.client == 0]
    for number in outages:
        for head in waiting(setting):
            for place in range((messages + _MORE) // 2):
                yield Schedule(head, ((1 + place * len(setting.clients), number),))


def _splits(setting: Setting, actions: Sequence[Action], messages: int) -> Iterator[Schedule]:
    """Yield schedules in which the cluster splits in two at a message of client-1, while all
    clients ask often."""
    splits = [number for number, action in enumerate(actions, 1) if action.way == SPLIT]
    for number in splits[:1]:
        for place in range(messages + _MORE):
            yield Schedule(hurried(setting), ((1 + place * len(setting.clients), number),))


def _bursts(setting: Setting, actions: Sequence[Action], messages: int) -> Iterator[Schedule]:
    """Yield schedules in which the successive messages of a majority have the same fault, the first
    one of its kind. If client-1 can, it extends its lease meanwhile, which takes about half of the
    messages of an acquire with its release.

    Client-1 asks all servers in a row. One of the places is in each of its rows.
    """
    servers = len(setting.servers)
    if servers < _TWICE:
        return
    majority = servers // 2 + 1
    kinds: dict[str, int] = {}
    for number, action in enumerate(actions, 1):
        if SIMULATED[family_of(action.kind)].messages:
            kinds.setdefault(action.kind, number)
    head, clients = renewing(setting), len(setting.clients)
    extension = messages // 2 if setting.extends else 0
    for number in kinds.values():
        for first in range(0, messages + extension + _MORE, servers - majority + 1):
            places = range(first, first + majority)
            yield Schedule(head, tuple((1 + place * clients, number) for place in places))


def _passes(
    actions: Sequence[Action], heads: Sequence[Head]
) -> Iterator[tuple[Head, Sequence[int]]]:
    """Yield set-ups, each with the numbers of the actions to try in it at every message.

    A busy machine plays only a hundred schedules or so. So each kind of fault comes in the first
    set-up before any comes in the second, and the first action of a kind before its second, in
    diagonals. One set-up is enough for the death of client-1; for the later actions of a kind, a
    few.
    """
    kinds: dict[str, list[int]] = {}
    for number, action in enumerate(actions, 1):
        if _is_near(action):
            kinds.setdefault(action.kind, []).append(number)
    most = max(map(len, kinds.values()), default=0)
    for diagonal in range(len(heads) + most - 1):
        for nth in reversed(range(min(diagonal + 1, most))):
            place = diagonal - nth
            numbers = [
                found[nth]
                for found in kinds.values()
                if nth < len(found) and place < _set_ups(actions[found[nth] - 1], nth, len(heads))
            ]
            if numbers:
                yield heads[place], numbers


def _set_ups(action: Action, nth: int, every: int) -> int:
    """Return how many set-ups the nth action of a kind gets."""
    if SIMULATED[family_of(action.kind)].kills:
        return 1
    return min(every, _FEW) if nth else every


def _is_near(action: Action) -> bool:
    """Whether it concerns client-1 or a message, and no server. Outages have come before."""
    if action.way == OUTAGE:
        return False
    return action.client == 0 or SIMULATED[family_of(action.kind)].messages
