"""Traces a run with real clients while it runs, for the bridge to real servers.

A simulated run is traced when it is played again (hunt/bridge/trace.py); a real one would differ a
little. The steps of an op are its messages, numbered as the gate on a client's node numbers them
(workloads/client/gate.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from fencepost.checker.history.history import NEMESIS
from fencepost.hunt.bridge.trace import Call, Met, Moment
from fencepost.hunt.sim.network import Refusal, Request, Wire
from fencepost.hunt.sim.record import Row
from fencepost.hunt.sim.setting import STORAGE, Setting
from fencepost.workloads.client.gate import REPLY, WAITS, number
from fencepost.workloads.client.steps import Step


class Asks(Protocol):
    """A client of the run. `ops`: how many it has begun. `asks`: the present one; "" if none."""

    ops: int

    @property
    def asks(self) -> str: ...


class RealTrace:
    """The trace of one run (hunt/bridge/trace.py, Traced). `rows`: those of the run, in the order
    in which they became known."""

    def __init__(self, setting: Setting) -> None:
        self.moments: list[Moment] = []
        self.aside: set[str] = set()
        self.met: dict[str, Met] = {}
        self.rows: list[Row] = []
        self._places = {name: at for at, name in enumerate((*setting.servers, STORAGE))}
        self._parts: Sequence[Asks] = ()
        self._counts: dict[tuple[str, int], Counter[str]] = {}
        # By the identity of the command, which is kept, so that no other gets its id.
        self._sent: dict[int, tuple[Any, Call, Call]] = {}
        # The number of the op of each moment that began, in order.
        self._of_op: dict[int, int] = {}

    def begin(self, rows: list[Row], parts: Sequence[Asks]) -> None:
        """Trace the run from here on: all clients are ready."""
        self.rows, self._parts = rows, parts

    def sends(self, link: Wire, command: tuple[Any, ...]) -> None:
        """Note that a client has sent a command about the lock or the resource."""
        if not self._parts:
            return
        client, server, now = link.client.name, link.server.name, link.network.world.now
        part = self._parts[link.client.index]
        if not part.asks:
            self.aside.add(client)
            return
        count = self._counts.setdefault((client, part.ops), Counter())
        count[server] += 1
        mine = number(count[server] - 1, self._places[server], len(self._places))
        sent = Call(client, Step(mine, "send", server, command, None, part.asks), now, now)
        waits = Call(client, Step(mine + WAITS, "receive", server, (), None, part.asks), now)
        self._sent[id(command)] = command, sent, waits
        self._of_op[len(self.moments)] = part.ops
        self._note("begins", sent, now)
        self._note("over", sent, now)
        self._note("begins", waits, now)

    def handled(self, link: Wire, command: tuple[Any, ...], reply: Any) -> None:
        if id(command) in self._sent:
            _, call, _ = self._sent[id(command)]
            if call.handled_ns is None:
                call.handled_ns = link.network.world.now
                call.denied = not reply or isinstance(reply, Refusal)
                self._note("handled", call, call.handled_ns)

    def lost(self, command: tuple[Any, ...]) -> None:
        if id(command) in self._sent:
            self._sent[id(command)][1].lost = True

    def arrives(self, link: Wire, command: tuple[Any, ...]) -> None:
        """Note that a reply has come to its client."""
        if id(command) in self._sent:
            _, _, waits = self._sent[id(command)]
            waits.over_ns = link.network.world.now
            self._note("over", waits, waits.over_ns)

    def meets(self, request: Request, before: int) -> None:
        """Note the message that the latest faults met. `before`: the number of rows before them."""
        if not request.command or id(request.command[0]) not in self._sent:
            return
        _, call, _ = self._sent[id(request.command[0])]
        at = call.step.number + (REPLY if request.back else WAITS)
        for row in self.rows[before:]:
            if row[1] == NEMESIS:
                self.met.setdefault(row[4]["fault"], Met(call, at))

    def _note(self, what: str, call: Call, now: int) -> None:
        self.moments.append(Moment(len(self.rows), now, what, call))

    def ends(self) -> None:
        """Put an op's start before its first message: the two are read from different files."""
        self.rows = list(self.rows)
        begun: dict[tuple[str, int], int] = {}
        counts: Counter[str] = Counter()
        for place, row in enumerate(self.rows):
            if row[2] == "invoke":
                client = str(row[6])
                counts[client] += 1
                begun[client, counts[client]] = place + 1
        least = 0
        for place, one in enumerate(self.moments):
            if place in self._of_op:
                least = max(least, begun.get((one.call.client, self._of_op[place]), 0))
            least = max(least, one.rows)
            self.moments[place] = Moment(least, one.time_ns, one.what, one.call)
