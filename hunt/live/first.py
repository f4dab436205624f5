"""The schedules with which a search with real clients begins: simple ones, in order.

A schedule takes real time here, so a search plays far fewer of them than a simulation. Most
defects need at most one fault, if it strikes the right message while another client is about to
ask. So the search first tries some set-ups without a fault, then each fault of client-1 and of a
message at each message of client-1. The clients run the same program, so one of them is enough.
Faults of the servers come later: they often break a promise whatever the client does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fencepost.hunt.faults.registry import SIMULATED, family_of
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.search.set_ups import Head, set_ups
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting

_FEW = 2
"""How many set-ups the other actions of a kind get: the first ones."""
_MORE = 4
"""Messages of client-1 beyond those of the undisturbed run: renewals, and second attempts."""


def simple(setting: Setting, actions: Sequence[Action], messages: int) -> Iterator[Schedule]:
    """Yield the first schedules of a search. `messages`: those of client-1 in the undisturbed
    run."""
    heads, clients = list(set_ups(setting)), len(setting.clients)
    yield from map(Schedule, heads)
    for number, some in _first(actions, heads):
        for place in range(messages + _MORE):
            for head in some:
                yield Schedule(head, ((1 + place * clients, number),))


def _first(
    actions: Sequence[Action], heads: Sequence[Head]
) -> Iterator[tuple[int, Sequence[Head]]]:
    """Yield the numbers of the actions, the first of each kind before all others, each with its
    set-ups. One is enough for the death of client-1; for the others of a kind, a few."""
    kinds: dict[str, list[int]] = {}
    for number, action in enumerate(actions, 1):
        if _is_near(action):
            kinds.setdefault(action.kind, []).append(number)
    for nth in range(max(map(len, kinds.values()), default=0)):
        for numbers in kinds.values():
            if nth < len(numbers):
                kills = SIMULATED[family_of(actions[numbers[nth] - 1].kind)].kills
                few = 1 if kills else _FEW if nth else len(heads)
                yield numbers[nth], heads[:few]


def _is_near(action: Action) -> bool:
    """Whether it concerns client-1 or a message, and no server."""
    return action.client == 0 or SIMULATED[family_of(action.kind)].messages
