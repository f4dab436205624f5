"""The simple schedules of a user lock: one fault of one client, at each place of its ops.

Most defects of a lock need at most one fault, if it strikes between the right two messages of an op
while another client is about to ask. Schedules that are drawn at random meet such a place rarely:
an op on asyncio takes a hundred steps, and the others must ask at the right time. So a hunt of a
user lock tries some set-ups (set_ups.py), first without a fault, then with each fault of client-1
and of its messages at the places of client-1's ops. All clients run the same code, so one of them
is enough. Faults of servers are left to the other schedules: most break a promise whatever the
client does.

What a client does depends on what it has received, so its places are the gaps between its messages.
The middle of each gap comes first, the other steps of a gap later: a clock may be read there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from fencepost.hunt.faults.registry import SIMULATED, family_of
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.run import Run
from fencepost.hunt.search.set_ups import set_ups
from fencepost.hunt.sim.network import Request
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import Event

_OPS = ("release", "extend", "acquire")
"""The ops of a lock, those that most often show a defect first."""
_PLACES = 6
"""At most this many steps of one gap: some code reads its clock again and again."""

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
        message = isinstance(event, Request) and event.link.client is client
        here = world.running is not None and world.running.node if event is None else event.node
        if message or here is client:
            self._op[1].append((world.step, message))


def single(setting: Setting, actions: Sequence[Action]) -> list[Schedule]:
    """Return the simple schedules, the most telling first."""
    heads = list(set_ups(setting))
    runs = [_Steps(setting, Schedule(head), actions) for head in heads]
    for run in runs:
        run.execute()
    found = dict.fromkeys(map(Schedule, heads))
    for rank in range(_PLACES):
        for run in runs:
            for step, number in _of(run, _kinds(actions), rank):
                found[Schedule(run.schedule.head, ((step, number),))] = None
    return list(found)


def _of(
    run: _Steps, kinds: Mapping[str, tuple[bool, list[int]]], rank: int
) -> Iterator[tuple[int, int]]:
    """Yield the injections of a rank into a run. The first action of a kind and the first step of
    a gap have the rank 0; later ones have higher ranks."""
    for f in _OPS:
        # The first acquire opens connections, another one does not.
        for op in run.ops.get(f, [])[: 2 if f == "acquire" else 1]:
            gaps, messages = _gaps(op), [step for step, message in op if message]
            for of_messages, numbers in kinds.values():
                for nth, number in enumerate(numbers[: rank + 1]):
                    if not of_messages:
                        yield from (
                            (gap[rank - nth], number) for gap in gaps if rank - nth < len(gap)
                        )
                    elif nth == rank:
                        yield from ((step, number) for step in messages)


def _kinds(actions: Sequence[Action]) -> dict[str, tuple[bool, list[int]]]:
    """Return the numbers of the actions on client-1, and of those on a message, by kind."""
    found: dict[str, tuple[bool, list[int]]] = {}
    for number, action in enumerate(actions, 1):
        of_messages = SIMULATED[family_of(action.kind)].messages
        if of_messages or action.client == 0:
            found.setdefault(action.kind, (of_messages, []))[1].append(number)
    return found


def _gaps(op: Op) -> list[list[int]]:
    """Return the steps between the messages of an op: the middle one of each gap first, then its
    ends, then others."""
    return [
        _spread([step for step, _ in steps])
        for message, steps in groupby(op, lambda one: one[1])
        if not message
    ]


def _spread(steps: Sequence[int]) -> list[int]:
    last = len(steps) - 1
    places = (last // 2, 0, last, last // 4, last * 3 // 4, last // 8)
    return list(dict.fromkeys(steps[place] for place in places))
