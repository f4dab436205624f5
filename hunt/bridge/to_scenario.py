"""Writes what clients and faults did in a simulation as steps that real ones can take.

Who has to wait for others, or is paused, stops at a step of its op (workloads/client/steps.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.hunt.bridge.events import LOST, REPLICATION, REQUEST, Deed, Hit, Op, long_ns
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
"""Until a message that was held back is there, once it is let go: TCP's longest wait after a hold
of some seconds is about as long as the hold, which is added."""


@dataclass
class _Client:
    """A client while steps are written: the fault that holds it, where it stops next, whether it
    waits for a message that is held back. `gone`: it was killed."""

    held: str = ""
    waits: bool = False
    gone: bool = False
    begun: bool = False
    stopped_at: str = ""


@dataclass
class Writer:
    """Writes steps, deed by deed."""

    setting: Setting
    scale: float
    checker: str
    unseen: set[str]
    notes: list[str] = field(default_factory=list)
    cannot: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._deeds: list[Deed] = []
        self._first: set[Deed] = set()
        self._clients = {name: _Client() for name in self.setting.clients}
        self._steps: list[Timed] = []
        self._cuts: dict[tuple[str, str], str] = {}
        self._in_waits: set[str] = set()
        self._on: dict[str, int] = {}
        self._holds = 0
        self._now, self._waits = 0, False

    def segment(self, found: Sequence[Deed]) -> None:
        """What happens without any time that counts in between."""
        if found:
            self._first.add(found[0])
        self._deeds += found

    def written(self) -> tuple[Timed, ...]:
        for place, deed in enumerate(self._deeds):
            self._now = deed.time_ns
            self._waits = self._waits or deed in self._first
            match deed.what:
                case "begin":
                    self._begin(place, deed)
                case "send":
                    self._send(place, deed)
                case "end":
                    self._end(place, deed)
                case "arrive":
                    self._arrive(place, deed)
                case "inject":
                    self._inject(place, deed)
                case "heal" if deed.fault is not None:
                    self._heal(deed.client, deed.fault.name)
        return tuple(self._steps)

    def _say(self, step: Plain, lasts_ns: int = 0) -> None:
        at_s, lasts_s = (ns * self.scale / 1e9 for ns in (self._now, lasts_ns))
        self._steps.append(Timed(step, round(at_s, 6), self._waits, round(lasts_s, 6)))
        self._waits = False

    # Ops.

    def _begin(self, place: int, deed: Deed) -> None:
        assert deed.op is not None
        client = self._clients[deed.client]
        if client.gone:
            return
        self._go_on(deed.client)
        stops = self._stops(deed.op)
        whole = self._whole(place, deed.op)
        client.begun = not whole
        if whole:
            # Its sleeps are not stretched: it may have to ask once more.
            again = deed.op.tries_again and deed.op.type == "ok"
            ends = next(d for d in self._deeds[place:] if d.op is deed.op and d.what == "end")
            do = Do(deed.client, deed.op.f, self._expected(deed.op), again)
            lasts_ns = ends.time_ns - deed.time_ns
            self._say(do, lasts_ns)
            # A real one that is refused sooner lets others wait until it would have been.
            self._waits = self._waits or lasts_ns >= long_ns(self.setting)
            return
        self._say(Begin(deed.client, deed.op.f, None, tuple(stops)))
        self._hold(place, deed)

    def _send(self, place: int, deed: Deed) -> None:
        assert deed.op is not None and deed.call is not None
        client = self._clients[deed.client]
        if client.gone or not client.begun:
            return
        if deed.hit is not None:
            self._hit(deed, deed.call, deed.hit)
        else:
            link = deed.client, deed.call.step.node
            if not self._alone(deed) and (cut := self._cuts.pop(link, "")):
                self._say(Heal(cut))
            self._go_on(deed.client)
        self._hold(place, deed)

    def _end(self, place: int, deed: Deed) -> None:
        assert deed.op is not None
        client = self._clients[deed.client]
        if client.gone or not client.begun:
            return
        self._go_on(deed.client)
        client.begun = client.waits = False
        self._say(Finish(deed.client, self._expected(deed.op)))

    def _expected(self, op: Op) -> str:
        # Whether a write is let in may hang on tokens that are drawn: it counts where data do.
        if op.f in ("read", "write") and self.checker not in _DATA and op.type != "info":
            return "any"
        return op.type

    def _whole(self, place: int, op: Op) -> bool:
        """Whether an op is over before anything else happens, with no fault in it."""
        for deed in self._deeds[place:]:
            if deed.op is not op or deed.hit is not None or deed.what == "inject":
                return False
            if deed.what == "end":
                return True
        return False

    # Where clients stop.

    def _stops(self, op: Op) -> list[str]:
        places = [place for place, deed in enumerate(self._deeds) if deed.op is op]
        points = [self._point(place) for place in places]
        return [point for point in dict.fromkeys(points) if point]

    def _point(self, place: int) -> str:
        """Where the client stops before it does this; "" where it does not."""
        deed = self._deeds[place]
        if deed.what == "inject" and deed.number:
            return before(deed.number)
        if deed.what == "send" and deed.call is not None:
            if deed.hit is not None:
                return connected(deed.call.step.number)
            if self._stops_before(place, deed):
                return before(deed.call.step.number)
        return ""

    def _stops_before(self, place: int, deed: Deed) -> bool:
        """Whether the client has to be stopped before it sends this: others come between this and
        what it did before, and nothing else keeps it."""
        places = (p for p in range(place - 1, -1, -1) if self._deeds[p].client == deed.client)
        before_ = next(places)
        earlier = self._deeds[before_]
        if deed.hit is not None or self._reopens(place, deed):
            return True
        if earlier.what == "inject":
            return False  # it is paused until now
        if earlier.what == "arrive" and not (earlier.hit and earlier.hit.waits):
            return True
        return before_ != place - 1

    def _reopens(self, place: int, deed: Deed) -> bool:
        """Whether what was done to an earlier message on this link has to be undone before this."""
        for earlier in reversed(self._deeds[:place]):
            if earlier.links == deed.links and earlier.what in ("send", "arrive"):
                hit = earlier.hit if earlier.what == "send" else None
                return hit is not None and hit.which != REPLICATION and not self._alone(earlier)
        return False

    def _next(self, place: int, deed: Deed) -> int | None:
        """The place of what the client does next in the same op."""
        for later in range(place + 1, len(self._deeds)):
            other = self._deeds[later]
            if other.op is deed.op and other.what in ("send", "end", "inject"):
                return later
        return None

    def _hold(self, place: int, deed: Deed) -> None:
        """Let the client come to where it has to wait for others next, if that is next."""
        client = self._clients[deed.client]
        later = self._next(place, deed)
        if client.waits or later is None:
            return
        point, coming = self._point(later), self._deeds[later]
        if not point:
            return
        self._say(Reach(deed.client, point, self._at(coming)))
        client.stopped_at = point
        if coming.what == "send":
            self._holds += 1
            client.held = f"hold-{self._holds}"
            words = f"{deed.client} is held {self._at(coming, 'before')}, as the schedule has it"
            arguments = {"point": point, "words": words}
            self._say(Inject(client.held, "pause", (deed.client,), arguments))

    def _at(self, deed: Deed, where: str = "until") -> str:
        step = None if deed.call is None else deed.call.step
        comes = "before" if where == "before" else "until"
        match step and step.kind:
            case "send":
                assert step is not None
                return f"{comes} its {step.command[0]} to {step.node}"
            case "connect":
                assert step is not None
                return f"{comes} it connects to {step.node}"
        return "until it is struck"

    def _go_on(self, name: str) -> None:
        """Let a client go on that is held."""
        client = self._clients[name]
        if client.held:
            self._say(Heal(client.held))
            client.held = ""

    # Faults.

    def _inject(self, place: int, deed: Deed) -> None:
        fault = deed.fault
        assert fault is not None
        family = SIMULATED[fault.family]
        if family.messages:
            self.cannot.append(f"cannot be played: {fault.words}")
            return
        if any(self._clients[name].begun for name in self.unseen):
            self.notes.append(
                f"{fault.words}: {self.setting.lock} brings its own connections, so this strikes "
                "its op at no certain place"
            )
        arguments = dict(fault.arguments)
        for name in ("offset_s", "period_s"):
            if name in arguments:
                arguments[name] = round(arguments[name] * self.scale, 6)
        if fault.links:
            arguments["sent"] = "lost"
        if deed.client:
            client = self._clients[deed.client]
            if client.gone:
                return
            if deed.number and client.stopped_at:
                arguments["point"] = client.stopped_at
            client.held = "" if family.kills else fault.name
            if client.begun and not deed.number:
                self._in_waits.add(fault.name)
            client.gone = family.kills
            done = "killed" if family.kills else "paused"
            arguments["words"] = f"{deed.client} is {done}"
        else:
            arguments["words"] = describe(fault.family, list(fault.targets), arguments)
        self._say(Inject(fault.name, fault.family, fault.targets, arguments))

    def _heal(self, name: str, fault: str) -> None:
        if not name:
            self._say(Heal(fault))
        elif fault in self._in_waits and self._clients[name].held == fault:
            # Its own threads hear of what came about meanwhile, while its op still waits.
            self._go_on(name)
        # Any other client goes on when it does something next.

    def _hit(self, deed: Deed, call: Call, hit: Hit) -> None:
        """A message is lost or held back: the packets of its way are, from before it is sent on."""
        client, server = deed.client, call.step.node
        name = f"{hit.fault}-{call.step.number}"
        words = hit.words
        arguments: dict[str, Any]
        ends = (client, server) if hit.which == REQUEST else (server, client)
        way = dict(zip(("source", "to"), ends, strict=True))
        alone = self._alone(deed)
        match hit.which, hit.how:
            case "request" | "reply", how if alone:
                family, arguments = "delay", {**way, "connection": True}
                played = "so are all packets of its connection that go the same way"
                if how == LOST:
                    arguments["lost"] = True
                    played += ", until the run ends"
            case "request", "late":
                family, arguments = "delay", {**way}
                played = f"all packets from {client} to {server} are held back for as long"
            case "replication", _:
                family, arguments = "partition", {"links": [list(hit.between)]}
                played = "the replica is cut off from before"
            case which, _:
                lost = "requests" if which == REQUEST else "replies"
                family, arguments = "partition", {"links": [[client, server]], "lost": lost}
                played = f"it is played as a cut of the {lost} of {' to '.join(ends)}"
        self.notes.append(f"{hit.words}: {played}")
        self._say(Inject(name, family, hit.between, arguments | {"words": words}))
        if hit.which != REPLICATION and not (alone and hit.how == LOST):
            self._cuts[client, server] = name
        self._on[name] = self._now
        self._clients[client].waits = hit.waits
        self._go_on(client)

    def _alone(self, deed: Deed) -> bool:
        """Whether a message can be struck without others of its link: its client tells which
        connection it goes by."""
        call = deed.call
        other = call is None or (call.step.node == STORAGE and self.setting.store != "redis")
        return MODELS[self.setting.model].steps and not other

    def _arrive(self, place: int, deed: Deed) -> None:
        """What was held back comes."""
        client = self._clients[deed.client]
        assert deed.call is not None
        link = deed.client, deed.call.step.node
        name = self._cuts.pop(link, "")
        if not name:
            return
        self._say(Heal(name))
        if client.waits:
            client.waits = False
            self._hold(place, deed)
            return
        if self._alone(deed):
            return  # its end waits for it
        held_s = (self._now - self._on[name]) * self.scale / 1e9
        self._say(Pass(round(held_s + _SETTLES_S, 3)))
