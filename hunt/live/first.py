"""The schedules with which a search with real clients begins: simple ones, in order.

A schedule takes real time here, so a search plays far fewer of them than a simulation. Most
defects need at most one fault, if it strikes the right message while another client is about to
ask. So the search first tries some set-ups without a fault, then each fault of client-1 and of a
message at each message of client-1, in one set-up after the other. The clients run the same
program, so one of them is enough. Faults of the servers come later: they often break a promise
whatever the client does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fencepost.hunt.faults.registry import SIMULATED, family_of
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.sim.schedule import EACH, HEAD, Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.work import BEGINS, EXTENDS, HOLDS_FOR, MORE, begin_times, work_times

Head = tuple[int, ...]
_PART = 1
"""The place of a part of a lease among the times of work."""
_FEW = 2
"""How many set-ups the other actions of a kind get: those first in `_heads`."""
_MORE = 4
"""Messages of client-1 beyond those of the undisturbed run: renewals, and second attempts."""


def simple(setting: Setting, actions: Sequence[Action], messages: int) -> Iterator[Schedule]:
    """Yield the first schedules of a search. `messages`: those of client-1 in the undisturbed
    run."""
    heads, clients = list(_heads(setting)), len(setting.clients)
    yield from map(Schedule, heads)
    for head, numbers in _passes(actions, heads):
        for place in range(messages + _MORE):
            for number in numbers:
                yield Schedule(head, ((1 + place * clients, number),))


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
    """Whether it concerns client-1 or a message, and no server."""
    return action.client == 0 or SIMULATED[family_of(action.kind)].messages


def _heads(setting: Setting) -> Iterator[Head]:
    """Yield the set-ups. The other clients ask when client-1's lease has just expired, all ask at
    once, or client-1 asks while another holds the lock. The others hold it for part of a lease:
    then a release that is refused shows that the lock was taken away. Otherwise client-1's second
    hold shows it. An extend in the middle of a long hold is answered, if it is late, when another
    client may have the lock."""
    late, longest = len(begin_times(setting)) - 1, len(work_times(setting)) - 1
    part = {BEGINS: late, HOLDS_FOR: _PART}
    yield _head(setting, {HOLDS_FOR: longest}, part)
    yield _head(setting, {MORE: 1}, part)
    if setting.extends:
        yield _head(setting, {HOLDS_FOR: longest, EXTENDS: 1}, part)
    yield _head(setting, {}, {HOLDS_FOR: _PART})
    yield _head(setting, {MORE: 1}, {BEGINS: late, HOLDS_FOR: longest})
    yield _head(setting, {BEGINS: 1}, {HOLDS_FOR: _PART, MORE: 1})
    if setting.extends:
        yield _head(setting, {EXTENDS: 1}, part)


def _head(setting: Setting, first: Mapping[int, int], others: Mapping[int, int]) -> Head:
    """Return a head: what client-1 does, and what all others do (work.py)."""
    numbers = [0] * HEAD
    for client in range(len(setting.clients)):
        plan = others if client else first
        numbers += [plan.get(place, 0) for place in range(EACH)]
    return tuple(numbers)
