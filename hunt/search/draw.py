"""Draws schedules at random.

It alternates between three strategies. *Random* injects with a probability before each step, so
early and late steps are equally likely. *PCT* (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS
2010) bounds the depth: it draws the number of injections, from one to `_DEEPEST`, and distributes
them uniformly over the steps of a run. For a given choice of actions it meets a violation of depth
d among n steps with probability 1/n^d at least; most locks break at a depth of one to three.
*Aimed* injections count from the beginning of an op: a release takes six steps of three hundred,
but violations of ownership arise there. Some come in bursts, the same action on several servers at
once, because breaking a majority often takes that. (PCT varies priorities of threads; here the
times at which messages arrive have that effect: the set-up and delays determine which of two
clients is first.) *Overtaken* is for user locks: a client stalls once in the middle of an op, past
its lease, while the others ask again when that lease expires, and hold long. A lock without a check
of its owner, or with a check that is a request of its own, shows it then. The other strategies
rarely combine such a stall with such a set-up. Clients of a user lock sometimes hurry: refused,
they ask again at once, while answers to their earlier requests are under way.

It draws an action by kind, with weights that a hunt learns from its coverage, then by way, then
uniformly among those.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from random import Random

from fencepost.hunt.faults.registry import SIMULATED, family_of
from fencepost.hunt.faults.simulated import Action, Simulated
from fencepost.hunt.sim.schedule import EACH, HEAD, Aim, Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.work import EXTENDS, HURRIES, begin_times, work_times

_DEEPEST = 6
_CHANCE = 0.02
_AIMED, _AIMS = 0.5, 4
_BURST = 0.25
_OPS = ("acquire", "release", "release", "read", "write", "extend")
_VARIATIONS = 1 << 16
# Long holds make runs long, because waiting clients keep asking.
_UNUSUAL = 0.3
_OWN = 0.4
_OVERTAKEN = 0.15
_HURRIES = 0.25
_STALLED = ("acquire", "release", "release", "extend")
# The last place of begin_times (work.py): the second try then comes when a lease of time 0 ends.
_MEETS_END = 2


class Drawer:
    """Draws the schedules of a setting.

    `steps`: the number of steps of an undisturbed run. `weights` of the kinds of actions.
    `without`: the numbers of the actions that it does not draw. `lengths`: of a user lock, the
    number of steps of each op.
    """

    def __init__(
        self,
        setting: Setting,
        actions: Sequence[Action],
        steps: int,
        weights: Mapping[str, float],
        without: Collection[int] = (),
        lengths: Mapping[str, int] | None = None,
    ) -> None:
        self._setting = setting
        self._steps = steps
        by_kind: dict[str, dict[str, list[int]]] = {}
        drawn = [(n, action) for n, action in enumerate(actions, 1) if n not in without]
        for number, action in drawn:
            by_kind.setdefault(action.kind, {}).setdefault(action.way, []).append(number)
        # Actions on a client itself, in the middle of its op.
        self._own: dict[int, list[int]] = {}
        for number, action in drawn:
            if action.client is not None:
                self._own.setdefault(action.client, []).append(number)
        self._groups = [list(ways.values()) for ways in by_kind.values()]
        self._weights = list(accumulate(weights.get(kind, 1.0) for kind in by_kind))
        self._begins = len(begin_times(setting))
        self._works = len(work_times(setting))
        self._lengths = (4, 4 + 3 * len(setting.servers), 10 * len(setting.servers))
        self._measured = lengths
        self._of_messages = {
            n for n, action in drawn if lengths is not None and _family(action).messages
        }
        # For each client: actions that let it work past its lease, or bring its messages late.
        slow = [(n, one.client) for n, one in drawn if _family(one).slows]
        late = [n for n, one in drawn if _family(one).late]
        self._stalls = [
            [[n for n, whose in slow if whose == client], late]
            for client in range(len(setting.clients))
        ]

    def draw(self, random: Random) -> tuple[Schedule, Sequence[Aim]]:
        if self._measured is not None and random.random() < _OVERTAKEN:
            return self._overtaken(random)
        head = [random.randrange(_VARIATIONS)]
        for _ in self._setting.clients:
            head += [
                int(random.random() * self._begins) if random.random() < _UNUSUAL else 0,
                int(random.random() * self._works) if random.random() < _UNUSUAL else 0,
                int(random.random() < 0.25),
                int(random.random() * self._setting.holds),
            ]
        if self._measured is not None:
            self._hurry(head, random)
        if random.random() < _AIMED:
            return Schedule(tuple(head)), self._aims(random)
        return Schedule(tuple(head), self._injections(random)), ()

    def _hurry(self, head: list[int], random: Random) -> None:
        """Let each client hurry with a certain probability."""
        for place in range(HEAD + EXTENDS, len(head), EACH):
            head[place] |= HURRIES if random.random() < _HURRIES else 0

    def _aims(self, random: Random) -> list[Aim]:
        """Draw injections relative to ops, each op with the same probability."""
        if not self._groups:
            return []
        if random.random() < _BURST:
            return self._burst(random)
        found = []
        for _ in range(1 + int(random.random() * _AIMS)):
            client = int(random.random() * len(self._setting.clients))
            f = _OPS[int(random.random() * len(_OPS))]
            nth = int(random.random() * 2)
            # An op sends to one server after another, with some steps for each.
            after = self._after(f, random)
            own = self._own.get(client)
            if own and random.random() < _OWN:
                action = own[int(random.random() * len(own))]
            else:
                action = self._action(random)
            found.append(Aim(client, f, nth, after, action))
        return found

    def _after(self, f: str, random: Random) -> int:
        """Draw a number of steps after the beginning of an op."""
        part, length = random.random(), float(random.choice(self._lengths))
        if self._measured is not None:
            # An op with more steps is stretched.
            length *= max(1.0, self._measured.get(f, 0) / self._lengths[-1])
        return int(part * length)

    def _overtaken(self, random: Random) -> tuple[Schedule, Sequence[Aim]]:
        """Draw a client that stalls in an op, or works past its lease, while the others wait for
        the end of its lease."""
        setting = self._setting
        stalled = int(random.random() * len(setting.clients))
        head = [random.randrange(_VARIATIONS)]
        for client in range(len(setting.clients)):
            begins = 0 if client == stalled else min(_MEETS_END, self._begins - 1)
            more = setting.holds - 1 if client == stalled else int(random.random() * setting.holds)
            works = int(random.random() * self._works)
            head += [begins, works, int(random.random() < 0.5), more]
        stalls = random.choice(self._stalls[stalled])
        if not stalls:
            return Schedule(tuple(head)), ()
        f = _STALLED[int(random.random() * len(_STALLED))]
        aim = Aim(
            stalled, f, int(random.random() * 2), self._after(f, random), random.choice(stalls)
        )
        return Schedule(tuple(head)), [aim]

    def _burst(self, random: Random) -> list[Aim]:
        """Draw the same action on several servers in successive steps, sometimes after another
        action."""
        client = int(random.random() * len(self._setting.clients))
        f = _OPS[int(random.random() * len(_OPS))]
        after = self._after(f, random)
        groups = self._kind(random)
        way = groups[int(random.random() * len(groups))]
        servers = max(2, len(self._setting.servers))
        if way[0] in self._of_messages:
            # The same of several messages, one after the other.
            chosen = [random.choice(way)] * (1 + int(random.random() * servers))
        else:
            chosen = random.sample(way, min(len(way), 1 + int(random.random() * servers)))
        found = [Aim(client, f, 0, after + place, action) for place, action in enumerate(chosen)]
        if random.random() < 0.5:
            found.append(Aim(client, "acquire", 0, 0, self._action(random)))
        return found

    def _injections(self, random: Random) -> tuple[tuple[int, int], ...]:
        if not self._groups:
            return ()
        steps = self._steps
        if random.random() < 0.75:
            depth = 1 + int(random.random() * _DEEPEST)
            places = {1 + int(random.random() * steps) for _ in range(depth)}
        else:
            places = set()
            place = 0
            while True:
                place += 1 + int(random.expovariate(_CHANCE))
                if place > steps:
                    break
                places.add(place)
        return tuple((place, self._action(random)) for place in sorted(places))

    def _action(self, random: Random) -> int:
        groups = self._kind(random)
        ways = groups[int(random.random() * len(groups))]
        return ways[int(random.random() * len(ways))]

    def _kind(self, random: Random) -> list[list[int]]:
        """Draw a kind by its weight, as `random.choices` does; return its actions by way."""
        drawn, last = random.random() * self._weights[-1], len(self._groups) - 1
        return self._groups[bisect(self._weights, drawn, 0, last)]


def _family(action: Action) -> Simulated:
    return SIMULATED[family_of(action.kind)]
