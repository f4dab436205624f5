"""The history: what every process and the nemesis did, as seen from the outside.

`history.jsonl` has one op per line. During a run the recorder appends ops as they arrive, so a
killed run leaves all that was recorded. Ops arrive slightly out of order, because each process
stamps its own ops and may be paused right after. A finished run is sorted by time and renumbered.
`read` accepts both; if it has to sort, it says so in `notes`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from sys import intern
from typing import Any, BinaryIO, TypeVar

from msgspec.structs import force_setattr

from fencepost import plainfile
from fencepost.atomic_write import replace
from fencepost.checker.history import compact, decoding
from fencepost.checker.history.op import LOCK_OPS, NEMESIS, SPONTANEOUS, TYPES, Call, Op, Type

__all__ = ["LOCK_OPS", "NEMESIS", "SPONTANEOUS", "TYPES", "Call", "Op", "Type"]

Found = TypeVar("Found")
_LONGEST = 16 << 20  # bytes of a line
_CHUNK = 1 << 17  # bytes decoded at a time
_LONG = 64 << 20  # bytes of a file above which memory matters more than time


class HistoryError(ValueError):
    """A history cannot be read. The message names the file, the line and the reason."""


@dataclass(frozen=True)
class History:
    """Ops in order of time, and notes on reading them.

    `ops` must not change after the first access: the checkers pair the same calls and build the
    same holds, so the results are cached.
    """

    ops: list[Op]
    notes: list[str] = field(default_factory=list)
    _known: dict[Hashable, list[Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    def once(self, key: Hashable, find: Callable[[], list[Found]]) -> list[Found]:
        """Return the result of `find`, computed once for each key; each caller gets its own
        list."""
        if key not in self._known:
            self._known[key] = find()
        return list(self._known[key])

    def clients(self) -> list[Op]:
        return self.once("clients", lambda: [op for op in self.ops if op.process != NEMESIS])

    def nemesis(self) -> list[Op]:
        return self.once("nemesis", lambda: [op for op in self.ops if op.process == NEMESIS])

    def lost(self) -> list[Op]:
        """Return the ops by which clients reported the loss of a hold, or of a place in a queue."""
        return self.once("lost", lambda: [op for op in self.clients() if op.f == "lost"])

    def nodes(self) -> list[str | None]:
        """Return the nodes of clients' ops without duplicates; None if an op names none."""
        return self.once("nodes", lambda: list({op.node for op in self.clients()}))

    @property
    def end_ns(self) -> int:
        """Return the time of the last op in ns, or 0 for an empty history."""
        return self.ops[-1].time if self.ops else 0

    def calls(self) -> list[Call]:
        """Return the clients' ops as calls, in order of invocation.

        `lost` and `renewed` are not calls: the client's library reports them unasked.

        Raises:
            HistoryError: a completion without invocation, or two open ops of one process.
        """
        return self.once("calls", lambda: pair(self.clients()))


def pair(ops: Iterable[Op]) -> list[Call]:
    """Match each invocation with its completion, by process."""
    open_by: dict[int | str, int] = {}  # the position of its call
    begins: list[Op] = []
    ends: list[Op | None] = []
    for op in ops:
        if op.type == "invoke":
            place = open_by.get(op.process)
            if place is not None:
                raise HistoryError(
                    f"op {op.index}: process {op.process} invokes {op.f} while its "
                    f"{begins[place].f} (op {begins[place].index}) is still open"
                )
            open_by[op.process] = len(begins)
            begins.append(op)
            ends.append(None)
        elif op.f not in SPONTANEOUS:
            place = open_by.pop(op.process, None)
            if place is None or begins[place].f != op.f:
                raise HistoryError(
                    f"op {op.index}: process {op.process} completes {op.f} that it never invoked"
                )
            ends[place] = op
    return list(map(Call, begins, ends))


def read(path: Path) -> History:
    """Read a history.jsonl, in order of time.

    The torn last line of a killed run is dropped, and a note says so. Any other unreadable line is
    an error, because a verdict on half a history is not a verdict.

    Raises:
        HistoryError: naming the file, the line and the reason.
    """
    notes: list[str] = []
    ops: list[Op] = []
    number = 0
    try:
        with plainfile.opened(path) as file:
            is_long = os.fstat(file.fileno()).st_size > _LONG
            for lines in _whole_lines(path, file):
                if lines.endswith(b"\n"):
                    found = _decoded(path, number, lines)
                    ops += _compact(found) if is_long else found
                    number += lines.count(b"\n")
                else:
                    ops += _torn(lines, number + 1, notes)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read: {error.strerror}") from error
    return History(_in_order(ops, notes), notes)


class Tail:
    """Reads a growing history incrementally."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = self._number = 0
        self._ops: list[Op] = []

    def read(self) -> History:
        """Return all ops so far, in order of time; an incomplete last line waits.

        Raises:
            HistoryError: as `read` does.
        """
        try:
            with plainfile.opened(self._path) as file:
                file.seek(self._place)
                for lines in _whole_lines(self._path, file, self._number):
                    if not lines.endswith(b"\n"):
                        break
                    self._ops += _compact(_decoded(self._path, self._number, lines))
                    self._number += lines.count(b"\n")
                    self._place += len(lines)
        except OSError as error:
            raise HistoryError(f"{self._path}: cannot be read: {error.strerror}") from error
        notes: list[str] = []
        self._ops = _in_order(self._ops, notes)
        return History(list(self._ops), notes)


def _whole_lines(path: Path, file: BinaryIO, number: int = 0) -> Iterator[bytes]:
    """Yield a file's lines in chunks, then the rest behind the last newline, if any.

    `number` lines precede the first. Raises HistoryError for a line that is too long.
    """
    rest = b""
    while more := file.read(_CHUNK):
        if len(rest) + (more.find(b"\n") + 1 or len(more)) > _LONGEST:
            raise HistoryError(f"{path}:{number + 1}: the line is longer than {_LONGEST} bytes")
        end = more.rfind(b"\n") + 1
        if end:
            whole = rest + more[:end]
            number += whole.count(b"\n")
            yield whole
            rest = b""
        rest += more[end:]
    if rest:
        yield rest


def _decoded(path: Path, number: int, lines: bytes) -> list[Op]:
    """Decode whole lines, preceded by `number` others."""
    try:
        return decoding.ops(lines)
    except decoding.BadLine as error:
        raise HistoryError(f"{path}:{number + error.number + 1}: {error}") from error


def _compact(ops: list[Op]) -> list[Op]:
    """Return the same ops in half of the memory. It takes as long as decoding them."""
    for op in ops:
        force_setattr(op, "f", intern(op.f))
        force_setattr(op, "value", compact.value(op.value))
        if op.node is not None:
            force_setattr(op, "node", intern(op.node))
    return ops


def _torn(line: bytes, number: int, notes: list[str]) -> list[Op]:
    """Return the op of a last line without newline, if it is complete."""
    try:
        return decoding.ops(line)
    except decoding.BadLine:
        notes.append(f"the last line ({number}) is torn and was dropped")
        return []


def _in_order(ops: list[Op], notes: list[str]) -> list[Op]:
    times = [op.time for op in ops]
    if times != sorted(times):
        late = sum(1 for before, after in pairwise(times) if after < before)
        notes.append(f"{late} ops were recorded late and have been put in order of time")
        ops = sorted(ops, key=attrgetter("time"))
    if [op.index for op in ops] != list(range(len(ops))):
        ops = [
            Op(i, o.time, o.process, o.type, o.f, o.value, o.error, o.node, o.extra)
            for i, o in enumerate(ops)
        ]
    return ops


def write(path: Path, ops: Iterable[Op]) -> None:
    """Replace `path` by these ops atomically: a reader sees the old file or the new one."""
    rows = (json.dumps(op.to_json(), separators=(",", ":")) + "\n" for op in ops)
    replace(path, (row.encode() for row in rows))
