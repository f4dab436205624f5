"""Decodes the lines of a history into ops.

A long history has millions of lines, nearly all as fencepost writes them. So `ops` passes many at a
time to msgspec, twice: once to make the ops, and once to validate their types, down to the last
field of a value. An unusual line goes through `parse`, which alone decides what is accepted and
reports what is wrong; the fast path is stricter in every respect.
"""

from __future__ import annotations

from io import BytesIO
from sys import intern
from types import MappingProxyType
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, MsgspecError, Struct, UnsetType
from msgspec.json import Decoder

from fencepost.checker.history import fields
from fencepost.checker.history.op import NEMESIS, NOTHING_MORE, TYPES, Op
from fencepost.strictjson import DEEPEST, decode

_NEEDED = ("time", "process", "type", "f")
_FIELDS = frozenset({"index", *_NEEDED, "value", "error", "node"})
_TYPES = {name: name for name in TYPES}


def ops(lines: bytes) -> list[Op]:
    """Return the op of each line, skipping empty lines. All lines but the last end with a newline.

    Raises:
        BadLine: a line is not an op.
    """
    found = _quickly(lines)
    return _one_by_one(lines) if found is None else found


def _one_by_one(lines: bytes) -> list[Op]:
    found: list[Op] = []
    for number, line in enumerate(BytesIO(lines)):
        usual = _quickly(line)
        if usual is not None:
            found += usual
        elif line.strip():
            try:
                found.append(parse(decode(line)))
            except ValueError as error:
                raise BadLine(number, line, error) from error
    return found


class BadLine(ValueError):
    """A line is not an op. `number` is its position among the lines passed, from 0."""

    def __init__(self, number: int, line: bytes, error: ValueError) -> None:
        super().__init__(f"{error}: {line[:120]!r}")
        self.number = number


def _quickly(lines: bytes) -> list[Op] | None:
    """Decode lines on the fast path, or return None if one is unusual."""
    # JSON text contains no raw newline, and no value begins right behind another. So if there are
    # as many objects as lines, each line is one object.
    many = lines.count(b"\n")
    if not (lines.startswith(b"{") and lines.endswith(b"}\n")):
        return None
    if lines.count(b"}\n{") != many - 1 or _may_be_deep(lines):
        return None
    try:
        _TYPED.decode_lines(lines)
        found = _OPS.decode_lines(lines)
    except (MsgspecError, ValueError, RecursionError):
        return None
    return found if len(found) == many else None


def _may_be_deep(lines: bytes) -> bool:
    """Return whether a line has enough brackets to be nested too deeply."""
    return max(map(len, lines.translate(None, _NO_BRACKETS).split(b"\n"))) > DEEPEST


_NO_BRACKETS = bytes(set(range(256)) - set(b"{[\n"))

_Number = (
    Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | Annotated[float, Meta(ge=-1e38, le=1e38)]
)
_Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Name = str | int
_Pairs = list[tuple[str, str]]


class _Arguments(Struct, gc=False):
    links: _Pairs | UnsetType = UNSET


class _Receipt(Struct, gc=False):
    processes: list[int | str] | UnsetType = UNSET


class _Value(Struct, gc=False):
    """The fields of clients' and the nemesis' values that fields.py checks, combined."""

    deadline: _Number | None = None
    ttl: _Number | None = None
    token: _Whole | None = None
    version: _Whole | None = None
    stored: _Whole | None = None
    lock: _Name | None = None
    hold: _Name | None = None
    resource: _Name | None = None
    mode: _Name | None = None
    granted_by: list[str] | None = None
    fault: str | UnsetType = UNSET
    phase: str | UnsetType = UNSET
    targets: list[str] | UnsetType = UNSET
    impairs: list[str] | UnsetType = UNSET
    links: _Pairs | UnsetType = UNSET
    forgets: bool | UnsetType = UNSET
    arguments: _Arguments | UnsetType = UNSET
    receipt: _Receipt | None = None


class _Line(Struct, gc=False):
    time: _Whole
    process: int | Literal["nemesis"]
    type: Literal["invoke", "ok", "fail", "info"]
    f: str
    value: _Value
    index: _Whole
    error: Annotated[list[Any], Meta(min_length=1)] | None = None
    node: str | None = None


_TYPED, _OPS = Decoder(_Line), Decoder(Op)


def parse(row: Any) -> Op:
    """Convert one decoded line to an Op.

    Raises:
        ValueError: the row is not an op; the message gives the reason.
    """
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    missing = [name for name in _NEEDED if name not in row]
    if missing:
        raise ValueError(f"no {', '.join(missing)}")
    if row["type"] not in TYPES:
        raise ValueError(f"type {row['type']!r:.60} is not one of {', '.join(TYPES)}")
    for name in ("time", "index"):
        number = row.get(name, 0)
        if type(number) is not int or not -(2**63) <= number < 2**63:
            raise ValueError(f"{name} {number!r:.60} is not a 64-bit integer")
    process = row["process"]
    if process != NEMESIS and (isinstance(process, bool) or not isinstance(process, int)):
        raise ValueError(f"process {process!r} is neither an integer nor {NEMESIS!r}")
    if not isinstance(row["f"], str):
        raise ValueError(f"f {row['f']!r:.60} is not text")
    value = row.get("value")
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"value {value!r:.60} is not an object")
    if value:
        fields.check(value, nemesis=process == NEMESIS)
    error = row.get("error")
    if error is not None and not (isinstance(error, list) and error):
        raise ValueError(f"error {error!r:.60} is not [kind, text]")
    node = row.get("node")
    if node is not None and not isinstance(node, str):
        raise ValueError(f"node {node!r:.60} is not text")
    return Op(
        index=row.get("index", 0),
        time=row["time"],
        process=process,
        type=_TYPES[row["type"]],
        f=intern(row["f"]),
        value=value or {},
        error=error,
        node=None if node is None else intern(node),
        extra=NOTHING_MORE if _FIELDS.issuperset(row) else _others(row),
    )


def _others(row: dict[str, Any]) -> MappingProxyType[str, Any]:
    """Return the fields of a row that this version does not know."""
    return MappingProxyType({name: what for name, what in row.items() if name not in _FIELDS})
