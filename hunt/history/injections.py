"""Injects the faults of the nemesis into a simulated run: with its own targets and arguments.

A hunt has a table of short actions. A long history takes the words of `--faults` instead, and draws
from them as the nemesis does (nemesis/families.py). Each simulated family injects a
drawn fault in its own way (`Simulated.drawn`), or its actions are used as they are. The simulated
world lacks all others, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from fencepost.hunt.faults.registry import SIMULATED
from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.sim.setting import Setting
from fencepost.nemesis.families import FAMILIES, check
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import HOLDER, PRIMARY, Drawn, Layout

POINTS = {
    "acquired": ("granted",),
    "before-write": ("write",),
    "replies-in-flight": ("acquire",),
    "between-check-and-delete": ("release",),
    "before-acquire": ("acquire",),
    "before-release": ("release",),
    "before-extend": ("extend",),
    "extend-in-flight": ("extend",),
    "between-requests": ("release", "extend"),
}
"""The moments of each failpoint: an op that begins, or a grant."""
_MOMENTS = ("acquire", "granted", "release", "release", "read", "write", "extend")
_CALLS = ("acquire", "release", "extend")
"""The ops that call the lock."""


@dataclass(frozen=True)
class Injection:
    """A drawn fault, and the moments of an op that it waits for. `action` makes it of the client
    whose moment has come, in place of the one that was drawn, and of its duration (ns)."""

    family: str
    moments: Sequence[str]
    action: Callable[[str, int], Action]


class Injector:
    """Draws injections for one entry of `--faults`.

    Raises:
        ValueError: the simulated world lacks the fault; the text is a clause.
    """

    def __init__(self, entry: str, setting: Setting, layout: Layout) -> None:
        (asked,) = check([entry], layout)
        self._asked, self._setting, self._layout = asked, setting, layout
        kind = f"{asked.family}/{asked.variant}" if asked.variant else asked.family
        self._ready = _hunted(asked.family, kind, setting)
        if not self._ready:
            _must_have(asked, setting)

    def draw(self, random: Random) -> Injection:
        if self._ready:
            ready = random.choice(self._ready)
            return Injection(self._asked.family, _MOMENTS, lambda client, lasts: ready)
        drawn = FAMILIES[self._asked.family].draw(random, self._layout, self._asked)[0]
        point = drawn.arguments.get("point")
        family = self._asked.family
        one = SIMULATED[family]
        inject = one.drawn
        assert inject is not None  # else __init__ refuses the entry
        known = {*self._layout.clients, HOLDER}
        clients = [node for node in drawn.targets if node in known]

        def action(client: str, lasts: int) -> Action:
            if drawn.duration_s:
                lasts = int(drawn.duration_s * 1e9)
            names = {clients[0]: client, client: clients[0]} if len(clients) == 1 else {}
            return Action(family, family, inject(_renamed(drawn, names), lasts))

        moments = ("granted",) if HOLDER in clients else POINTS.get(str(point), _MOMENTS)
        if one.in_a_call:  # the next call, if none is running
            calls = _CALLS[1:] if HOLDER in clients else _CALLS
            moments = tuple(one for one in moments if one in calls) or calls
        return Injection(family, moments, action)


def _hunted(family: str, kind: str, setting: Setting) -> list[Action]:
    """Return the hunt's actions of a kind that a history uses as they are."""
    one = SIMULATED.get(family)
    if one is None or one.drawn is not None:
        return []
    names = one.usual_kinds if kind == family else [name for name in one.all_kinds if name == kind]
    if names and (why := one.refuses(setting)):
        raise ValueError(why)
    return [action for action in one.actions(setting) if action.kind in names]


def _must_have(asked: Asked, setting: Setting) -> None:
    one = SIMULATED.get(asked.family)
    if one is None or one.drawn is None:
        why = f"the simulated world has no {asked.family}"
    elif asked.target == PRIMARY:
        why = "no simulated server leads the others"
    else:
        why = one.lacks(asked, setting)
    if why:
        raise ValueError(why)


def _renamed(drawn: Drawn, names: dict[str, str]) -> Drawn:
    def new(value: Any) -> Any:
        if isinstance(value, list):
            return [new(one) for one in value]
        return names.get(value, value) if isinstance(value, str) else value

    arguments = {name: new(value) for name, value in drawn.arguments.items()}
    return Drawn(new(drawn.targets), arguments)
