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

    `step`: the client's present step. `ops`: how many ops it has begun.
    """

    resigns = True

    def __init__(
        self, node: ClientNode, program: Program, world: RealWorld, rows: list[Row]
    ) -> None:
        self.node = node
        self._program = program
        self._world = world
        self._rows = rows
        self._task: Task | None = None
        self._asked = ""
        self._answer: tuple[str, dict[str, Any]] | None = None
        self._shown = False
        self.step = self.ops = 0

    @property
    def extends(self) -> bool:
        return self._program.extends

    @property
    def asks(self) -> str:
        """Return its present op; "" if none."""
        return self._asked if self._answer is None else ""

    def apply(self, f: str, asked: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Do one op; return how it ended, and its value."""
        self._task, self._asked, self._answer = self._world.running, f, None
        self.ops += 1
        self._world.stir()
        self._program.tell({"f": f, "value": asked})
        while self._answer is None:
            self._world.wait()
        return self._answer

    def hear(self, event: dict[str, Any]) -> None:
        """Take an event of the program. Raises Faulty if it is none."""
        row = self._row(event)
        self._rows.append(row)
        type, f, value = row[2:5]
        if f in _SPONTANEOUS or type == "invoke":
            return
        if f != self._asked or self._answer is not None:
            raise Faulty(f"it wrote the end of an op {f!r} that it was not asked for")
        self._answer = type, value
        if self._task is not None:
            self._world.at(self._world.now, Wake(self._task))

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
        if type == "invoke":
            self._shown = self._world.shows(time)
        at = self._world.time_of(time, self._shown)
        if isinstance(deadline := value.get("deadline"), int):
            value["deadline"] = at + deadline - time
        return at, process, type, f, value, error, self.node.name, self.step

    def close(self) -> None:
        """Do nothing: the program closes its lock after the run."""
