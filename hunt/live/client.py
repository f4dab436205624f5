"""A client of a run, whose ops its program carries out.

It replaces the simulated client (workloads/client/client.py). `apply` sends an op, and returns when
it has completed. The program's events are the history, with the times that it gave them, converted
to the time of the run.
"""

from __future__ import annotations

from typing import Any

from fencepost.hunt.live.program import Faulty, Program
from fencepost.hunt.live.world import RealWorld
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.record import Row
from fencepost.hunt.sim.world import Task, Wake
from fencepost.workloads.contract.lock import Failed

_SPONTANEOUS = ("lost", "renewed", "close")
_TYPES = ("invoke", "ok", "fail", "info")


class RealClient:
    """Applies ops by its program, one at a time.

    `step`: the client's present step. `ops`: how many ops it has begun. `program`: the present one;
    that of an elector has successors. `jobs`: none, because the SDKs have no electors that drive
    their work.
    """

    jobs = None

    def __init__(
        self, node: ClientNode, program: Program, world: RealWorld, rows: list[Row]
    ) -> None:
        self.node = node
        self.program = program
        self._world = world
        self._rows = rows
        self._task: Task | None = None
        self._asked = ""
        self._answer: tuple[str, dict[str, Any]] | None = None
        self._shown = False
        # The present hold, and those whose reigns have ended.
        self._hold, self._ended = "", set[str]()
        self.step = self.ops = 0

    @property
    def extends(self) -> bool:
        return self.program.extends

    @property
    def resigns(self) -> bool:
        return self.program.resigns

    @property
    def asks(self) -> str:
        """Return its present op; "" if none."""
        return self._asked if self._answer is None else ""

    def apply(self, f: str, asked: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Do one op; return how it ended, and its value."""
        self.ops += 1
        type, answer = self._ask(f, {"f": f, "value": asked})
        if type == "ok" and f == "acquire":
            self._hold = str(answer.get("hold"))
        elif type == "fail" and f == "acquire" and self.program.elects:
            self.leave()  # as the process of a candidate that was not elected, on nodes
        return type, answer

    def _ask(self, f: str, message: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Send the program a message, and wait for its answer."""
        self._task, self._asked, self._answer = self._world.running, f, None
        self._world.stir()
        self.program.tell(message)
        while self._answer is None:
            self._world.wait()
        return self._answer

    def _answered(self, type: str, value: dict[str, Any]) -> None:
        self._answer = type, value
        if self._task is not None:
            self._world.at(self._world.now, Wake(self._task))

    def hear(self, event: dict[str, Any]) -> None:
        """Take an event of the program. Raises Faulty if it is none."""
        row = self._row(event)
        self._rows.append(row)
        type, f, value = row[2:5]
        if f == "lost":
            self._ended.add(str(value.get("hold")))
        if f in _SPONTANEOUS or type == "invoke":
            return
        if f != self._asked or self._answer is not None:
            raise Faulty(f"it wrote the end of an op {f!r} that it was not asked for")
        self._answered(type, value)

    # Electors (docs/protocol.md).

    def take_jobs(self) -> None:
        """Do nothing: there are none."""

    def leads(self, hold: str) -> bool:
        """Whether its program has not said that the reign has ended."""
        return hold not in self._ended

    def stopped(self) -> None:
        """Note that the program begins no beat, because its leader has stopped."""
        if not self.program.elects or self.asks not in ("read", "write"):
            raise Faulty("it wrote `stopped`, which answers the beat of a leader only")
        self._ended.add(self._hold)
        self._answered("stopped", {})

    def leave(self) -> None:
        """Let the process end; return once its successor is ready."""
        self._ask("close", {"control": "leave"})

    def succeeds(self, program: Program) -> None:
        """Continue with this successor. Its predecessor, which is gone, has closed."""
        out = self.node.out
        self._rows.append(
            (self._world.now, out.process, "ok", "close", {}, None, self.node.name, self.step)
        )
        program.reads_real = self.program.reads_real
        self.program = program
        if self.asks == "close":
            self._answered("ok", {})

    def hear_last(self, events: list[dict[str, Any]], place: int) -> None:
        """Take the events that the program had written when it was killed: they come before the
        rows from this place on, which tell of its end."""
        self._rows[place:place] = [self._row(event) for event in events]

    def _row(self, event: dict[str, Any]) -> Row:
        try:
            time, process, type = int(event["time"]), int(event["process"]), event["type"]
            f, value, said = event["f"], dict(event["value"]), event.get("error")
            error = None if said is None else Failed(str(said[0]), str(said[1]))
        except (KeyError, TypeError, ValueError, IndexError) as wrong:
            raise Faulty(f"it wrote an event without a valid {wrong}") from wrong
        if type not in _TYPES:
            raise Faulty(f"it wrote an event of the type {type!r}")
        self.node.out.process = process
        later = 0 if self.program.clock is None else self.program.clock.later_ns
        if type == "invoke":
            # A program that reads the real clock may meet the time of the run by chance, later on.
            self._shown = not self.program.reads_real and self._world.shows(time - later)
            self.program.reads_real = not self._shown
        at = self._world.time_of(time - later if self._shown else time, self._shown)
        if isinstance(deadline := value.get("deadline"), int):
            value["deadline"] = at + deadline - time
        return at, process, type, f, value, error, self.node.name, self.step

    def close(self) -> None:
        """Do nothing: the program closes its lock after the run."""
