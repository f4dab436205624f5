"""What a simulated run did, message by message: as much as it takes to do it again elsewhere.

The record of a run (hunt/sim/record.py) has ops and faults. Here are the steps of each op
(workloads/client/steps.py), in the order in which they and the rows of the record came, and when
each request was carried out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from fencepost.hunt.faults.action import Action
from fencepost.hunt.run import Run
from fencepost.hunt.sim.network import Refusal, Wire
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.workloads.client.steps import Step


@dataclass(eq=False)
class Call:
    """A step of a client's op: when it began, when it was over and, of a request, when it was
    carried out; None where that never came. `lost`: it or its reply met a cut. `denied`: it was
    answered that nothing was done."""

    client: str
    step: Step
    begun_ns: int
    over_ns: int | None = None
    handled_ns: int | None = None
    lost: bool = False
    denied: bool = False

    @property
    def sends(self) -> bool:
        return self.step.kind == "send"

    @property
    def goes_out(self) -> bool:
        """Whether it is the first that a link has to be there for."""
        return self.step.kind in ("send", "connect")


@dataclass(frozen=True)
class Moment:
    """A call `begins`, is `over`, or is `handled`, when the record had so many rows."""

    rows: int
    time_ns: int
    what: str
    call: Call


class Trace:
    """Listens to a run (network.Tap) and to its clients. `aside`: the clients for which a thread
    of their lock's own has sent anything."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.aside: set[str] = set()
        self._run: Run | None = None
        # What is being sent on a link, and what had been sent on it before.
        self._sending: dict[Wire, tuple[Call, Any]] = {}
        # By the very object that was sent: requests often say the same. It is kept, lest another
        # takes its place.
        self._sent: dict[int, tuple[Any, Call]] = {}

    def play(self, setting: Setting, schedule: Schedule, actions: list[Action]) -> Run:
        """Carry out a schedule, and listen."""
        self._run = Run(setting, schedule, actions, self, watch=lambda name: _Ear(self, name))
        return self._run.carry_out()

    def handled(self, link: Wire, command: tuple[Any, ...], reply: Any) -> None:
        call = self._of(command)
        if call is None:
            self.aside.add(link.client.name)
        elif call.handled_ns is None:
            call.handled_ns = link.network.world.now
            call.denied = not reply or isinstance(reply, Refusal)
            self._note("handled", call)

    def lost(self, link: Wire, command: tuple[Any, ...]) -> None:
        call = self._of(command)
        if call is None and link in self._sending:
            call, _ = self._sending[link]
        if call is not None:
            call.lost = True

    def refused(self, link: Wire) -> None:
        """Nothing was sent."""

    def begins(self, client: str, step: Step) -> Call:
        assert self._run is not None
        call = Call(client, step, self._run.world.now)
        if step.link is not None:
            link = cast(Wire, step.link)
            self._sending[link] = call, link.command
        self._note("begins", call)
        return call

    def over(self, call: Call) -> None:
        assert self._run is not None
        call.over_ns = self._run.world.now
        if call.step.link is not None:
            link = cast(Wire, call.step.link)
            _, before = self._sending.pop(link)
            if link.command is not before:
                for one in _commands(link.command):
                    self._sent[id(one)] = one, call
        self._note("over", call)

    def _note(self, what: str, call: Call) -> None:
        run = self._run
        assert run is not None
        self.moments.append(Moment(len(run.rows), run.world.now, what, call))

    def _of(self, command: tuple[Any, ...]) -> Call | None:
        """The call that sent this; None where that was a lock's own thread."""
        found = self._sent.get(id(command))
        return None if found is None else found[1]


def _commands(sent: tuple[Any, ...]) -> tuple[Any, ...]:
    """A socket may be sent several commands at once."""
    return sent if sent and isinstance(sent[0], tuple) else (sent,)


class _Ear:
    """Listens to one client."""

    def __init__(self, trace: Trace, client: str) -> None:
        self._trace = trace
        self._client = client
        self._calls: dict[int, Call] = {}

    def comes(self, step: Step) -> None:
        self._calls[step.number] = self._trace.begins(self._client, step)

    def over(self, step: Step) -> None:
        self._trace.over(self._calls.pop(step.number))
