"""Traces a simulated run message by message, in enough detail to reproduce it on real servers.

The record of a run (hunt/sim/record.py) has ops and faults. The trace adds the steps of each op
(workloads/client/steps.py), in order with the rows of the record, and the time at which each
request was executed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from fencepost.hunt.faults.simulated import Action
from fencepost.hunt.run import Run
from fencepost.hunt.sim.network import Refusal, Wire
from fencepost.hunt.sim.record import Row
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.setting import Setting
from fencepost.workloads.client.steps import Step


@dataclass(eq=False)
class Call:
    """A step of a client's op: when it began and ended, and when a request was executed; None if
    never.

    `lost`: it or its reply met a cut. `denied`: the reply was that nothing was done.
    """

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
        """Whether the step needs the link."""
        return self.step.kind in ("send", "connect")


@dataclass(frozen=True)
class Moment:
    """A call `begins`, is `over` or is `handled`; `rows`: the length of the record at that time."""

    rows: int
    time_ns: int
    what: str
    call: Call


@dataclass(frozen=True)
class Met:
    """The request whose message met a fault, and the number of the step at which it did."""

    call: Call
    number: int


class Traced(Protocol):
    """The trace of a run: its `moments`, in order with its `rows`.

    `aside`: the clients whose lock has sent messages outside of its ops. `met`: the message that a
    fault met, by the fault's name; empty for a simulated run, whose moments show it.
    """

    @property
    def rows(self) -> Sequence[Row]: ...
    @property
    def moments(self) -> Sequence[Moment]: ...
    @property
    def aside(self) -> set[str]: ...
    @property
    def met(self) -> Mapping[str, Met]: ...


class Trace:
    """Observes a run (network.Tap) and its clients."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.aside: set[str] = set()
        self.met: dict[str, Met] = {}
        self._run: Run | None = None
        # The call that is sending on each link, and the command that was sent on it before.
        self._sending: dict[Wire, tuple[Call, Any]] = {}
        # By the identity of the sent object, because equal requests are frequent. The object is
        # kept, so that no other gets its id.
        self._sent: dict[int, tuple[Any, Call]] = {}

    @property
    def rows(self) -> Sequence[Row]:
        return self._run.rows if self._run is not None else ()

    def play(self, setting: Setting, schedule: Schedule, actions: list[Action]) -> Run:
        """Execute a schedule, and trace it."""
        self._run = Run(setting, schedule, actions, self, watch=lambda name: _Ear(self, name))
        return self._run.execute()

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
        """Do nothing: no message was sent."""

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
        """Return the call that sent this, or None if it came from a lock's own thread."""
        found = self._sent.get(id(command))
        return None if found is None else found[1]


def _commands(sent: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the commands of one message: a socket may send several at once."""
    return sent if sent and isinstance(sent[0], tuple) else (sent,)


class _Ear:
    """Observes one client."""

    def __init__(self, trace: Trace, client: str) -> None:
        self._trace = trace
        self._client = client
        self._calls: dict[int, Call] = {}

    def comes(self, step: Step) -> None:
        self._calls[step.number] = self._trace.begins(self._client, step)

    def over(self, step: Step) -> None:
        self._trace.over(self._calls.pop(step.number))
