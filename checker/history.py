"""The history: what every process and the nemesis did, as seen from the outside.

`history.jsonl` holds one op a line. While a run goes on its recorder appends ops as they
reach it, so that a run that is killed leaves all that it saw; they reach it a little out of
order, because each process stamps its own ops and may be stopped right after. A finished run
is sorted by time and numbered anew. `read` accepts both: it sorts, and says so in `notes`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from fencepost.checker import compact, fields
from fencepost.strictjson import decode
from fencepost.wholefile import replace

Type = Literal["invoke", "ok", "fail", "info"]
TYPES: tuple[Type, ...] = ("invoke", "ok", "fail", "info")
_TYPES = {name: name for name in TYPES}
NEMESIS = "nemesis"
LOCK_OPS = ("acquire", "extend", "release")
SPONTANEOUS = ("lost", "renewed")
"""What a client's library says on its own: the hold is over; its lease runs on."""

Found = TypeVar("Found")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_LONGEST = 16 << 20  # bytes of a line
_NEEDED = ("time", "process", "type", "f")
_FIELDS = frozenset({"index", *_NEEDED, "value", "error", "node"})


class HistoryError(ValueError):
    """A history that cannot be read: the file, the line and the reason."""


@dataclass(frozen=True, slots=True)
class Op:
    """One event of the history.

    `time` is in ns since the test's start; `process` an int or "nemesis"; `error` is
    [kind, text] on fail and info. `extra` keeps fields this version does not know.
    """

    index: int
    time: int
    process: int | str
    type: Type
    f: str
    value: dict[str, Any]
    error: list[Any] | None = None
    node: str | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    def to_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {
            "index": self.index,
            "time": self.time,
            "process": self.process,
            "type": self.type,
            "f": self.f,
            "value": self.value,
        }
        if self.error is not None:
            row["error"] = self.error
        if self.node is not None:
            row["node"] = self.node
        return {**row, **self.extra}


@dataclass(frozen=True, slots=True)
class Call:
    """An op from its invocation to its completion; `end` is None where none was recorded."""

    begin: Op
    end: Op | None

    @property
    def type(self) -> Type:
        """ok, fail or info; an op that never completed is info: it may have happened."""
        return self.end.type if self.end else "info"

    @property
    def value(self) -> dict[str, Any]:
        """What was asked, overlaid with what was answered."""
        return self.begin.value | (self.end.value if self.end else {})

    def get(self, name: str) -> Any:
        """One field of `value`; None where it is missing."""
        if self.end is not None and name in self.end.value:
            return self.end.value[name]
        return self.begin.value.get(name)


@dataclass(frozen=True)
class History:
    """Ops in order of time, and what had to be said about reading them.

    `ops` must not change once anything was asked of them: the checkers pair the same calls and
    build the same holds, so that is done once and kept.
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
        """What `find` finds, found once for each key; each caller gets a list of its own."""
        if key not in self._known:
            self._known[key] = find()
        return list(self._known[key])

    def clients(self) -> list[Op]:
        return self.once("clients", lambda: [op for op in self.ops if op.process != NEMESIS])

    def nemesis(self) -> list[Op]:
        return self.once("nemesis", lambda: [op for op in self.ops if op.process == NEMESIS])

    @property
    def end_ns(self) -> int:
        """The time of the last op, in ns; 0 for an empty history."""
        return self.ops[-1].time if self.ops else 0

    def calls(self) -> list[Call]:
        """The clients' ops as calls, in order of invocation.

        `lost` and `renewed` stand alone: the client's library says so, nobody asked it.

        Raises:
            HistoryError: a completion without invocation, or two open ops of one process.
        """
        return self.once("calls", lambda: pair(self.clients()))


def pair(ops: Iterable[Op]) -> list[Call]:
    """Join each invocation with its completion, by process."""
    open_by: dict[int | str, Op] = {}
    ends: dict[int, Op] = {}
    begins: list[Op] = []
    for op in ops:
        if op.type == "invoke":
            if op.process in open_by:
                raise HistoryError(
                    f"op {op.index}: process {op.process} invokes {op.f} while its "
                    f"{open_by[op.process].f} (op {open_by[op.process].index}) is still open"
                )
            open_by[op.process] = op
            begins.append(op)
        elif op.f in SPONTANEOUS:
            continue
        else:
            begin = open_by.pop(op.process, None)
            if begin is None or begin.f != op.f:
                raise HistoryError(
                    f"op {op.index}: process {op.process} completes {op.f} that it never invoked"
                )
            ends[begin.index] = op
    return [Call(begin, ends.get(begin.index)) for begin in begins]


def parse(row: Any) -> Op:
    """One decoded line as an Op.

    Raises:
        ValueError: with the reason, where the row is no op.
    """
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    missing = [name for name in _NEEDED if name not in row]
    if missing:
        raise ValueError(f"no {', '.join(missing)}")
    if row["type"] not in TYPES:
        raise ValueError(f"type {row['type']!r:.60} is none of {', '.join(TYPES)}")
    for name in ("time", "index"):
        number = row.get(name, 0)
        if type(number) is not int or not -(2**63) <= number < 2**63:
            raise ValueError(f"{name} {number!r:.60} is no integer of 64 bits")
    process = row["process"]
    if process != NEMESIS and (isinstance(process, bool) or not isinstance(process, int)):
        raise ValueError(f"process {process!r} is neither an integer nor {NEMESIS!r}")
    if not isinstance(row["f"], str):
        raise ValueError(f"f {row['f']!r:.60} is no text")
    value = row.get("value")
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"value {value!r:.60} is no object")
    if value:
        fields.check(value, nemesis=process == NEMESIS)
    error = row.get("error")
    if error is not None and not (isinstance(error, list) and error):
        raise ValueError(f"error {error!r:.60} is not [kind, text]")
    node = row.get("node")
    if node is not None and not isinstance(node, str):
        raise ValueError(f"node {node!r:.60} is no text")
    return Op(
        index=row.get("index", 0),
        time=row["time"],
        process=process,
        type=_TYPES[row["type"]],
        f=intern(row["f"]),
        value=compact.value(value) if value else {},
        error=error,
        node=None if node is None else intern(node),
        extra=_NOTHING if _FIELDS.issuperset(row) else _others(row),
    )


def _others(row: dict[str, Any]) -> Mapping[str, Any]:
    """What this version does not know of a row."""
    return {name: what for name, what in row.items() if name not in _FIELDS}


def read(path: Path) -> History:
    """Read a history.jsonl, in order of time.

    The torn last line of a run that was killed is dropped, and a note says so; anything
    else that cannot be understood is an error, because a verdict on half a history is none.

    Raises:
        HistoryError: naming the file, the line and the reason.
    """
    notes: list[str] = []
    ops: list[Op] = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(partial(file.readline, _LONGEST), b""), 1):
                if line.endswith(b"\n"):
                    if line.strip():
                        ops.append(_parse_line(path, number, line))
                elif len(line) == _LONGEST:
                    raise HistoryError(f"{path}:{number}: the line is longer than {_LONGEST} bytes")
                elif line.strip():
                    ops += _torn(line, number, notes)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read: {error.strerror}") from error
    return History(_in_order(ops, notes), notes)


def _torn(line: bytes, number: int, notes: list[str]) -> list[Op]:
    """The op of a last line without newline, if it is whole all the same."""
    try:
        return [parse(decode(line))]
    except ValueError:
        notes.append(f"the last line ({number}) is torn and was dropped")
        return []


def _parse_line(path: Path, number: int, line: bytes) -> Op:
    try:
        return parse(decode(line))
    except ValueError as error:
        raise HistoryError(f"{path}:{number}: {error}: {line[:120]!r}") from error


def _in_order(ops: list[Op], notes: list[str]) -> list[Op]:
    late = sum(1 for before, after in pairwise(ops) if after.time < before.time)
    if late:
        notes.append(f"{late} ops were recorded late and have been put in order of time")
        ops = sorted(ops, key=lambda op: op.time)
    if any(op.index != place for place, op in enumerate(ops)):
        ops = [
            Op(i, o.time, o.process, o.type, o.f, o.value, o.error, o.node, o.extra)
            for i, o in enumerate(ops)
        ]
    return ops


def write(path: Path, ops: Iterable[Op]) -> None:
    """Replace `path` by these ops in one step: a reader sees the old file or the new one."""
    rows = (json.dumps(op.to_json(), separators=(",", ":")) + "\n" for op in ops)
    replace(path, (row.encode() for row in rows))
