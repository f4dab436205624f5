"""Injects the faults of the nemesis into a simulated run: with its own targets and arguments.

A hunt has a table of short actions. A long history takes the words of `--faults` instead, and draws
from them as the nemesis does (nemesis/families.py). Each family of NODES is simulated here on the
nodes that are drawn; the families of MESSAGES concern single messages, with the actions of the
hunt. The simulated world lacks all others, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from fencepost.hunt.faults.cancel import cancel
from fencepost.hunt.faults.kill import crash, kill_client
from fencepost.hunt.faults.registry import SIMULATED
from fencepost.hunt.faults.simulated import Action, Inject, seconds
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.network import Server
from fencepost.hunt.sim.protocols import Run
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS, Event, Node, Timer
from fencepost.nemesis.families import FAMILIES, check
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.targets import HOLDER, PRIMARY, Drawn, Layout

MESSAGES = ("delay", "packet/loss", "packet/duplicate", "failover", "memory")
"""Kinds of the hunt's own actions that a history uses as they are."""
POINTS = {
    "acquired": ("granted",),
    "before-write": ("write",),
    "replies-in-flight": ("acquire",),
    "between-check-and-delete": ("release",),
    "before-acquire": ("acquire",),
    "before-release": ("release",),
    "before-extend": ("extend",),
    "between-requests": ("release", "extend"),
}
"""The moments of each failpoint: an op that begins, or a grant."""
_MOMENTS = ("acquire", "granted", "release", "release", "read", "write", "extend")
_CALLS = ("acquire", "release", "extend")
"""The ops that call the lock."""
_LOOK = 20 * MS


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
        self._ready = _hunted(kind, setting)
        if not self._ready:
            _must_have(asked, setting)

    def draw(self, random: Random) -> Injection:
        if self._ready:
            ready = random.choice(self._ready)
            return Injection(self._asked.family, _MOMENTS, lambda client, lasts: ready)
        drawn = FAMILIES[self._asked.family].draw(random, self._layout, self._asked)[0]
        point = drawn.arguments.get("point")
        family = self._asked.family
        known = {*self._layout.clients, HOLDER}
        clients = [node for node in drawn.targets if node in known]

        def action(client: str, lasts: int) -> Action:
            if drawn.duration_s:
                lasts = int(drawn.duration_s * 1e9)
            names = {clients[0]: client, client: clients[0]} if len(clients) == 1 else {}
            return Action(family, family, _INJECTS[family](_renamed(drawn, names), lasts))

        moments = ("granted",) if HOLDER in clients else POINTS.get(str(point), _MOMENTS)
        if family == "cancel":  # the next call, if none is running
            calls = _CALLS[1:] if HOLDER in clients else _CALLS
            moments = tuple(one for one in moments if one in calls) or calls
        return Injection(family, moments, action)


def _hunted(kind: str, setting: Setting) -> list[Action]:
    """Return the hunt's actions of a kind that a history uses as they are."""
    names = [name for name in MESSAGES if kind in (name, name.partition("/")[0])]
    if kind == "packet":
        names = ["packet/loss"]  # no TCP connection delivers a message twice
    one = SIMULATED.get(names[0].partition("/")[0]) if names else None
    if one is None:
        return []
    if why := one.refuses(setting):
        raise ValueError(why)
    return [action for action in one.actions(setting) if action.kind in names]


def _must_have(asked: Asked, setting: Setting) -> None:
    why = ""
    if asked.family not in _INJECTS:
        why = f"the simulated world has no {asked.family}"
    elif asked.target == PRIMARY:
        why = "no simulated server leads the others"
    elif asked.family == "clock" and asked.target in ("client", "clients"):
        if not setting.own:
            why = "only your own lock reads the wall clock of a simulated client"
    elif asked.family == "clock" and not MODELS[setting.model].wall_leases:
        why = f"leases of {setting.kind} run on monotonic clocks"
    elif asked.variant in ("renewal", "monotonic", "reject", "kept", "wiped", "never"):
        why = f"the simulated world has no {asked.family}/{asked.variant}"
    if why:
        raise ValueError(why)


def _renamed(drawn: Drawn, names: dict[str, str]) -> Drawn:
    def new(value: Any) -> Any:
        if isinstance(value, list):
            return [new(one) for one in value]
        return names.get(value, value) if isinstance(value, str) else value

    arguments = {name: new(value) for name, value in drawn.arguments.items()}
    return Drawn(new(drawn.targets), arguments)


def _nodes(run: Run, names: Sequence[str]) -> list[Node]:
    known: dict[str, Node] = {one.name: one for one in (*run.servers, *run.clients, run.storage)}
    return [known[name] for name in names if name in known]


def _pause(drawn: Drawn, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        nodes = [node for node in _nodes(run, drawn.targets) if node.up]
        if not nodes or any(node.paused_until > run.world.now for node in nodes):
            return True
        until = drawn.arguments.get("until") == "other-holds"
        words = f"{', '.join(drawn.targets)} is paused"
        if not until:
            for node in nodes:
                node.paused_until = run.world.now + lasts
            words = f"{words} for {seconds(lasts)}"
            run.faults.begin("pause", drawn.targets, drawn.arguments, words, _nothing, lasts)
            return True
        name = run.faults.begin("pause", drawn.targets, drawn.arguments, words, _nothing, lasts)
        _until_granted(run, nodes[0], name, len(run.rows))
        return True

    return inject


def _until_granted(run: Run, node: Node, name: str, first: int) -> None:
    """Pause a client until another one is granted the lock, or until the fault ends."""
    world = run.world

    def look() -> None:
        if name not in run.faults.on or not node.up:
            return
        if any(row[2:4] == ("ok", "acquire") and row[6] != node.name for row in run.rows[first:]):
            run.faults.on[name]()
            return
        node.paused_until = world.now + _LOOK + 1
        world.at(world.now + _LOOK, Timer(world.nowhere, look))

    look()


def _partition(drawn: Drawn, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        index = {one.name: one.index for one in (*run.servers, *run.clients, run.storage)}
        clients = {client.name for client in run.clients}
        ends = []
        for pair in drawn.arguments["links"]:
            client, server = pair if pair[0] in clients else (pair[1], pair[0])
            if client in clients and server in index:
                ends.append((index[client], index[server]))
        lost, network = drawn.arguments.get("lost", "both"), run.network
        cuts = [
            (cut, [end for end in ends if end not in cut])
            for cut, side in ((network.requests_cut, "requests"), (network.replies_cut, "replies"))
            if lost in ("both", side)
        ]
        for cut, new in cuts:
            cut.update(new)

        def undo() -> None:
            for cut, new in cuts:
                cut.difference_update(new)

        words = f"{drawn.targets[0]} is cut off"
        run.faults.begin("partition", drawn.targets, drawn.arguments, words, undo, lasts)
        return True

    return inject


def _clock(drawn: Drawn, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        given, world = drawn.arguments, run.world
        nodes = [
            node for node in _nodes(run, drawn.targets) if isinstance(node, Server | ClientNode)
        ]
        offset = round(float(given.get("offset_s", 0.0)) * 1e9)

        def change(by: int) -> None:
            for node in nodes:
                if isinstance(node, Server):
                    node.settle()
                if given.get("kind") == "drift":
                    node.clock.drift(world.now, float(given["rate"]))
                else:
                    node.clock.jump(world.now, by)

        def undo() -> None:
            for node in nodes:
                if isinstance(node, Server):
                    node.settle()
                node.clock.right(world.now)

        change(offset)
        words = f"the clocks of {', '.join(drawn.targets)} are changed"
        name = run.faults.begin("clock", drawn.targets, given, words, undo, lasts)
        if given.get("kind") == "strobe":
            _strobe(run, name, change, offset, round(float(given["period_s"]) * 1e9))
        return True

    return inject


def _strobe(run: Run, name: str, change: Callable[[int], None], by: int, period: int) -> None:
    world = run.world

    def turn(by: int) -> None:
        if name in run.faults.on:
            change(by)
            world.at(world.now + period, Timer(world.nowhere, partial(turn, -by)))

    world.at(world.now + period, Timer(world.nowhere, partial(turn, -by)))


def _crash(power: bool, drawn: Drawn, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        for number, server in enumerate(run.servers):
            if server.name in drawn.targets:
                crash(number, power, run, event)
        for number, client in enumerate(run.clients):
            if client.name in drawn.targets:
                kill_client(number, run, event)
        return True

    return inject


def _cancel(drawn: Drawn, lasts: int) -> Inject:
    def inject(run: Run, event: Event | None) -> bool:
        for client in run.clients:
            if client.name in drawn.targets:
                cancel(run, client, drawn.arguments)
        return True

    return inject


def _nothing() -> None:
    """Undo nothing: the fault ends by itself."""


_INJECTS: dict[str, Callable[[Drawn, int], Inject]] = {
    "pause": _pause,
    "partition": _partition,
    "clock": _clock,
    "kill": partial(_crash, False),
    "power": partial(_crash, True),
    "cancel": _cancel,
}
