"""Writes the events of a simulation as steps of a scenario for real clients and servers.

A client that waits for others, or is paused, stops at a step of its op (workloads/client/steps.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.hunt.bridge.events import long_ns
from fencepost.hunt.bridge.records import LOST, REPLICATION, REQUEST, Event, Hit, Op
from fencepost.hunt.bridge.trace import Call
from fencepost.hunt.faults.registry import SIMULATED
from fencepost.hunt.models.registry import MODELS
from fencepost.hunt.sim.setting import STORAGE, Setting
from fencepost.nemesis.families import describe
from fencepost.workloads.client.steps import before, connected
from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    Pass,
    Plain,
    Reach,
    Timed,
)

_DATA = ("resource",)
_SETTLES_S = 1.0
"""Time for a released message to arrive: TCP's longest wait after a hold of some seconds is about
as long as the hold, which is added."""


@dataclass
class _Client:
    """The state of a client while steps are written.

    It has the fault that holds the client, where the client stops next, and whether it waits for a
    delayed message. `gone`: it was killed.
    """

    held: str = ""
    waits: bool = False
    gone: bool = False
    begun: bool = False
    stopped_at: str = ""


@dataclass
class Writer:
    """Writes steps, one event after another."""

    setting: Setting
    scale: float
    checker: str
    unseen: set[str]
    notes: list[str] = field(default_factory=list)
    cannot: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._events: list[Event] = []
        self._first: set[Event] = set()
        self._clients = {name: _Client() for name in self.setting.clients}
        self._steps: list[Timed] = []
        self._cuts: dict[tuple[str, str], str] = {}
        self._in_waits: set[str] = set()
        self._on: dict[str, int] = {}
        self._holds = 0
        self._now, self._waits = 0, False

    def segment(self, found: Sequence[Event]) -> None:
        """Write events between which no significant time passes."""
        if found:
            self._first.add(found[0])
        self._events += found

    def written(self) -> tuple[Timed, ...]:
        for place, event in enumerate(self._events):
            self._now = event.time_ns
            self._waits = self._waits or event in self._first
            match event.what:
                case "begin":
                    self._begin(place, event)
                case "send":
                    self._send(place, event)
                case "end":
                    self._end(place, event)
                case "arrive":
                    self._arrive(place, event)
                case "inject":
                    self._inject(place, event)
                case "heal" if event.fault is not None:
                    self._heal(event.client, event.fault.name)
        return tuple(self._steps)

    def _add(self, step: Plain, lasts_ns: int = 0) -> None:
        at_s, lasts_s = (ns * self.scale / 1e9 for ns in (self._now, lasts_ns))
        self._steps.append(Timed(step, round(at_s, 6), self._waits, round(lasts_s, 6)))
        self._waits = False

    # Ops.

    def _begin(self, place: int, event: Event) -> None:
        assert event.op is not None
        client = self._clients[event.client]
        if client.gone:
            return
        self._resume(event.client)
        stops = self._stops(event.op)
        whole = self._is_undisturbed(place, event.op)
        client.begun = not whole
        if whole:
            # Its sleeps are not stretched, so it may have to retry.
            again = event.op.tries_again and event.op.type == "ok"
            ends = next(d for d in self._events[place:] if d.op is event.op and d.what == "end")
            do = Do(event.client, event.op.f, self._expected(event.op), again)
            lasts_ns = ends.time_ns - event.time_ns
            self._add(do, lasts_ns)
            # If a real client is refused sooner, the others still wait until this time.
            self._waits = self._waits or lasts_ns >= long_ns(self.setting)
            return
        self._add(Begin(event.client, event.op.f, None, tuple(stops)))
        self._run_to_stop(place, event)

    def _send(self, place: int, event: Event) -> None:
        assert event.op is not None and event.call is not None
        client = self._clients[event.client]
        if client.gone or not client.begun:
            return
        if event.hit is not None:
            self._hit(event, event.call, event.hit)
        else:
            link = event.client, event.call.step.node
            if not self._affects_one_message(event) and (cut := self._cuts.pop(link, "")):
                self._add(Heal(cut))
            self._resume(event.client)
        self._run_to_stop(place, event)

    def _end(self, place: int, event: Event) -> None:
        assert event.op is not None
        client = self._clients[event.client]
        if client.gone or not client.begun:
            return
        self._resume(event.client)
        client.begun = client.waits = False
        self._add(Finish(event.client, self._expected(event.op)))

    def _expected(self, op: Op) -> str:
        # Drawn tokens may decide whether a write is accepted, so its outcome counts only for data
        # checkers.
        if op.f in ("read", "write") and self.checker not in _DATA and op.type != "info":
            return "any"
        return op.type

    def _is_undisturbed(self, place: int, op: Op) -> bool:
        """Return whether an op ends before any other event, with no fault in it."""
        for event in self._events[place:]:
            if event.op is not op or event.hit is not None or event.what == "inject":
                return False
            if event.what == "end":
                return True
        return False

    # Where clients stop.

    def _stops(self, op: Op) -> list[str]:
        places = [place for place, event in enumerate(self._events) if event.op is op]
        points = [self._point(place) for place in places]
        return [point for point in dict.fromkeys(points) if point]

    def _point(self, place: int) -> str:
        """Return the point at which the client stops before this event, or ""."""
        event = self._events[place]
        if event.what == "inject" and event.number:
            return before(event.number)
        if event.what == "send" and event.call is not None:
            if event.hit is not None:
                return connected(event.call.step.number)
            if self._stops_before(place, event):
                return before(event.call.step.number)
        return ""

    def _stops_before(self, place: int, event: Event) -> bool:
        """Return whether the client must be stopped before it sends this.

        It must if other events come between this one and its previous one, and nothing else delays
        it.
        """
        places = (p for p in range(place - 1, -1, -1) if self._events[p].client == event.client)
        before_ = next(places)
        earlier = self._events[before_]
        if event.hit is not None or self._reopens(place, event):
            return True
        if earlier.what == "inject":
            return False  # the pause lasts until here
        if earlier.what == "arrive" and not (earlier.hit and earlier.hit.waits):
            return True
        return before_ != place - 1

    def _reopens(self, place: int, event: Event) -> bool:
        """Return whether a fault on an earlier message of this link must be undone before this
        event."""
        for earlier in reversed(self._events[:place]):
            if earlier.links == event.links and earlier.what in ("send", "arrive"):
                hit = earlier.hit if earlier.what == "send" else None
                return (
                    hit is not None
                    and hit.which != REPLICATION
                    and not self._affects_one_message(earlier)
                )
        return False

    def _next(self, place: int, event: Event) -> int | None:
        """Return the index of the client's next event in the same op."""
        for later in range(place + 1, len(self._events)):
            other = self._events[later]
            if other.op is event.op and other.what in ("send", "end", "inject"):
                return later
        return None

    def _run_to_stop(self, place: int, event: Event) -> None:
        """Run the client to its next stop, if its next event has one."""
        client = self._clients[event.client]
        later = self._next(place, event)
        if later is None or (client.waits and self._arrives(place, later)):
            return
        point, coming = self._point(later), self._events[later]
        if not point:
            return
        self._add(Reach(event.client, point, self._at(coming)))
        client.stopped_at = point
        if coming.what == "send":
            self._holds += 1
            client.held = f"hold-{self._holds}"
            words = f"{event.client} is held {self._at(coming, 'before')}, as in the schedule"
            arguments = {"point": point, "words": words}
            self._add(Inject(client.held, "pause", (event.client,), arguments))

    def _arrives(self, place: int, until: int) -> bool:
        """Return whether a delayed message of this event's op arrives before a later event. The
        client does nothing until then; otherwise it also sends to other servers."""
        op = self._events[place].op
        return any(one.what == "arrive" and one.op is op for one in self._events[place:until])

    def _at(self, event: Event, where: str = "until") -> str:
        step = None if event.call is None else event.call.step
        comes = "before" if where == "before" else "until"
        match step and step.kind:
            case "send":
                assert step is not None
                return f"{comes} its {step.command[0]} to {step.node}"
            case "connect":
                assert step is not None
                return f"{comes} it connects to {step.node}"
        return "until a fault is injected on it"

    def _resume(self, name: str) -> None:
        """Resume a client that is held."""
        client = self._clients[name]
        if client.held:
            self._add(Heal(client.held))
            client.held = ""

    # Faults.

    def _inject(self, place: int, event: Event) -> None:
        fault = event.fault
        assert fault is not None
        family = SIMULATED[fault.family]
        if family.messages or family.in_a_call:
            self.cannot.append(f"cannot be reproduced: {fault.words}")
            return
        if any(self._clients[name].begun for name in self.unseen):
            self.notes.append(
                f"{fault.words}: {self.setting.lock} opens its own connections, so the fault "
                "may meet its op at any step"
            )
        arguments = dict(fault.arguments)
        for name in ("offset_s", "period_s"):
            if name in arguments:
                arguments[name] = round(arguments[name] * self.scale, 6)
        if fault.links:
            arguments["sent"] = "lost"
        if event.client:
            client = self._clients[event.client]
            if client.gone:
                return
            if event.number and client.stopped_at:
                arguments["point"] = client.stopped_at
            client.held = "" if family.kills else fault.name
            if client.begun and not event.number:
                self._in_waits.add(fault.name)
            client.gone = family.kills
            done = "killed" if family.kills else "paused"
            arguments["words"] = f"{event.client} is {done}"
        else:
            arguments["words"] = describe(fault.family, list(fault.targets), arguments)
        self._add(Inject(fault.name, fault.family, fault.targets, arguments))

    def _heal(self, name: str, fault: str) -> None:
        if not name:
            self._add(Heal(fault))
        elif fault in self._in_waits and self._clients[name].held == fault:
            # Its own threads receive replies meanwhile, while its op still waits.
            self._resume(name)
        # Any other client resumes at its next event.

    def _hit(self, event: Event, call: Call, hit: Hit) -> None:
        """Inject the loss or delay of a message, for all packets of its direction, before it is
        sent."""
        client, server = event.client, call.step.node
        name = f"{hit.fault}-{call.step.number}"
        words = hit.words
        arguments: dict[str, Any]
        ends = (client, server) if hit.which == REQUEST else (server, client)
        way = dict(zip(("source", "to"), ends, strict=True))
        alone = self._affects_one_message(event)
        match hit.which, hit.how:
            case "request" | "reply", how if alone:
                family, arguments = "delay", {**way, "connection": True}
                reproduced = "so are all packets of its connection in the same direction"
                if how == LOST:
                    arguments["lost"] = True
                    reproduced += ", until the run ends"
            case "request", "late":
                family, arguments = "delay", {**way}
                reproduced = f"all packets from {client} to {server} are held back as long"
            case "replication", _:
                family, arguments = "partition", {"links": [list(hit.between)]}
                reproduced = "the replica is cut off before the write"
            case which, _:
                lost = "requests" if which == REQUEST else "replies"
                family, arguments = "partition", {"links": [[client, server]], "lost": lost}
                reproduced = f"reproduced as a cut of the {lost} of {' to '.join(ends)}"
        self.notes.append(f"{hit.words}: {reproduced}")
        self._add(Inject(name, family, hit.between, arguments | {"words": words}))
        if hit.which != REPLICATION and not (alone and hit.how == LOST):
            self._cuts[client, server] = name
        self._on[name] = self._now
        self._clients[client].waits = hit.waits
        self._resume(client)

    def _affects_one_message(self, event: Event) -> bool:
        """Return whether a message can be affected without others of its link.

        It can if the client reports which connection it uses.
        """
        call = event.call
        other = call is None or (call.step.node == STORAGE and self.setting.store != "redis")
        return MODELS[self.setting.model].steps and not other

    def _arrive(self, place: int, event: Event) -> None:
        """Release a delayed message."""
        client = self._clients[event.client]
        assert event.call is not None
        link = event.client, event.call.step.node
        name = self._cuts.pop(link, "")
        if not name:
            return
        self._add(Heal(name))
        if client.waits:
            client.waits = False
            self._run_to_stop(place, event)
            return
        if self._affects_one_message(event):
            return  # the end of the op waits for it
        held_s = (self._now - self._on[name]) * self.scale / 1e9
        self._add(Pass(round(held_s + _SETTLES_S, 3)))
