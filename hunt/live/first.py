"""The schedules with which a search with real clients begins: simple ones, in order.

A schedule takes real time here, so a search plays a small part of what a simulation plays. Most
defects need at most one fault, if it strikes the right message while another client is about to
ask. So the search first tries some set-ups without a fault, then each fault of client-1 and of a
message at each message of client-1. The clients run the same program, so one of them is enough.
Faults of the servers come later: they often break a promise whatever the client does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from fencepost.hunt.faults.registry import SIMULATED, family_of
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.sim.schedule import EACH, HEAD, Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.work import BEGINS, EXTENDS, HOLDS_FOR, MORE, begin_times, work_times

MOST = 500
_PART = 1
"""The place of a part of a lease among the times of work."""
_MORE = 4
"""Messages of client-1 beyond those of the undisturbed run: renewals, and second attempts."""


def simple(setting: Setting, actions: Sequence[Action], messages: int) -> Iterator[Schedule]:
    """Yield the first schedules of a search, at most `MOST`. `messages`: those of client-1 in the
    undisturbed run."""
    return islice(_all(setting, actions, messages), MOST)


def _all(setting: Setting, actions: Sequence[Action], messages: int) -> Iterator[Schedule]:
    heads, clients = list(_heads(setting)), len(setting.clients)
    yield from map(Schedule, heads)
    for number in _first(actions):
        for place in range(messages + _MORE):
            for head in heads:
                yield Schedule(head, ((1 + place * clients, number),))


def _first(actions: Sequence[Action]) -> list[int]:
    """Return the numbers of the actions, the first of each kind before all others."""
    kinds: dict[str, list[int]] = {}
    for number, action in enumerate(actions, 1):
        if _is_near(action):
            kinds.setdefault(action.kind, []).append(number)
    longest = max(map(len, kinds.values()), default=0)
    return [of[nth] for nth in range(longest) for of in kinds.values() if nth < len(of)]


def _is_near(action: Action) -> bool:
    """Whether it concerns client-1 or a message, and no server."""
    return action.client == 0 or SIMULATED[family_of(action.kind)].messages


def _heads(setting: Setting) -> Iterator[tuple[int, ...]]:
    """Yield the set-ups. The other clients ask when client-1 has just released the lock, and when
    its lease has just expired; or all ask at once. They hold the lock for part of a lease: then a
    release that is refused shows that the lock was taken away. Otherwise client-1's second hold
    shows it."""
    late, longest = len(begin_times(setting)) - 1, len(work_times(setting)) - 1
    yield _head(setting, {MORE: 1}, {BEGINS: late, HOLDS_FOR: _PART})
    yield _head(setting, {HOLDS_FOR: longest}, {BEGINS: late, HOLDS_FOR: _PART})
    yield _head(setting, {}, {HOLDS_FOR: _PART})
    if setting.extends:
        yield _head(setting, {EXTENDS: 1}, {BEGINS: late, HOLDS_FOR: _PART})
    yield _head(setting, {MORE: 1}, {BEGINS: late, HOLDS_FOR: longest})


def _head(setting: Setting, first: Mapping[int, int], others: Mapping[int, int]) -> tuple[int, ...]:
    """Return a head: what client-1 does, and what all others do (work.py)."""
    numbers = [0] * HEAD
    for client in range(len(setting.clients)):
        plan = others if client else first
        numbers += [plan.get(place, 0) for place in range(EACH)]
    return tuple(numbers)
