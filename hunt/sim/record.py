"""Records a simulated run as ops of a history (checker/history/history.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import RLock
from typing import Any

from fencepost.checker.history import history
from fencepost.checker.history.history import NEMESIS, History, Op
from fencepost.hunt.sim.world import World
from fencepost.workloads.contract.lock import Failed

Row = tuple[int, int | str, str, str, dict[str, Any], Failed | None, str | None, int]
"""An event: time, process, type, f, value, error, node, and the step of the run."""


class Outbox:
    """Receives the ops of one simulated client (`Said`, workloads/client/wire.py)."""

    __slots__ = ("_node", "_rows", "_world", "process", "speaking")

    def __init__(self, world: World, rows: list[Row], process: int, node: str) -> None:
        self.process = process
        # Nothing else speaks meanwhile: a greenlet runs until it waits. A lock of C code is entered
        # faster than a `nullcontext`.
        self.speaking: AbstractContextManager[Any] = RLock()
        self._world = world
        self._rows = rows
        self._node = node

    def now(self) -> int:
        """Take a step, and return the time."""
        world = self._world
        world.step += 1
        if world.step >= world.decision:
            world.decide_here()
        return world.now

    def event(self, type: str, f: str, value: dict[str, Any], error: Failed | None = None) -> None:
        world = self._world
        task = world.running
        if task is not None and task.over:
            return  # killed, or the run has ended: no client is left to report
        if error is not None:
            # The traceback would keep alive every local variable of the client.
            error.__traceback__ = error.__cause__ = error.__context__ = None
        self._rows.append((world.now, self.process, type, f, value, error, self._node, world.step))

    def flush(self) -> None:
        """Do nothing: each op is recorded at once."""


def of_nemesis(rows: list[Row], now: int, family: str, value: dict[str, Any], how: str) -> None:
    """Record an op of the nemesis, with its receipt."""
    rows.append((now, NEMESIS, "invoke", family, value, None, None, 0))
    receipt = {"proved": True, "how": how, **value.get("receipt", {})}
    rows.append((now, NEMESIS, "ok", family, value | {"receipt": receipt}, None, None, 0))


def all_have(rows: Iterable[Row], field: str) -> bool:
    """Return whether every grant of a run has a token, or a deadline, and there is one."""
    granted = [row[4] for row in rows if row[2:4] == ("ok", "acquire")]
    return bool(granted) and all(value.get(field) is not None for value in granted)


def to_history(rows: list[Row]) -> History:
    return History([_op(index, row) for index, row in enumerate(rows)])


def _op(index: int, row: Row) -> Op:
    time, process, type, f, value, error, node, _ = row
    said = None if error is None else [error.kind, error.text]
    return Op(index, time, process, type, f, value, said, node)  # type: ignore[arg-type]


def write(path: Path, rows: list[Row]) -> None:
    history.write(path, to_history(rows))


def lines(rows: list[Row]) -> bytes:
    """Return the bytes of history.jsonl."""
    made = (json.dumps(_op(i, row).to_json(), separators=(",", ":")) for i, row in enumerate(rows))
    return "".join(f"{line}\n" for line in made).encode()
