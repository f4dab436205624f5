"""One line of a client as an event, by the rules of the history that it goes into.

A line that the history's reader does not understand would make the whole history unreadable, so
each is decoded as a whole before it is recorded: a part that is only skipped may hold anything.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from fencepost.checker.history.history import SPONTANEOUS

# Every reader supports numbers that both a double and a signed 64-bit integer can represent.
Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Process = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
# The most brackets in a line, including those in strings: no event has many, and a reader's stack
# is limited.
_BRACKETS = 200


class Value(msgspec.Struct):
    """The fields of calls and completions (docs/protocol.md) that checkers read."""

    lock: str | None = None
    resource: str | None = None
    mode: str | None = None
    ttl: Number | None = None
    hold: str | None = None
    token: Number | None = None
    minor: Number | None = None
    deadline: Number | None = None
    assumed: bool = False
    wakeups: Number | None = None
    granted_by: list[str] | None = None
    value: str | Number | None = None
    version: Number | None = None
    stored: Number | None = None


class Event(msgspec.Struct):
    """An event of a client, without its place in the history."""

    time: Number
    process: Process
    type: Literal["invoke", "ok", "fail", "info"]
    f: str
    value: Value | None = None
    error: Annotated[list[Any], msgspec.Meta(min_length=1)] | None = None
    node: str | None = None


# Required fields (docs/protocol.md): every event of an op names the subject of the op, and an `ok`
# reports its outcome, too. Otherwise a checker would blame the lock for facts that its client did
# not report. A field outside _NULLABLE must have a value too.
_NAMES = {
    "acquire": ("lock",),
    "extend": ("lock", "hold"),
    "release": ("lock", "hold"),
    "read": ("resource",),
    "write": ("resource",),
    "lost": ("lock", "hold"),
    "renewed": ("lock", "hold", "deadline"),
}
_TELLS = {
    "acquire": ("lock", "hold", "token", "deadline"),
    "extend": ("lock", "hold", "deadline"),
    "release": ("lock", "hold"),
    "read": ("resource", "value", "version"),
    "write": ("resource", "value", "version"),
}
_NULLABLE = ("token", "deadline", "value")

# msgspec analyses the type here, and not at the first event: where several threads have their first
# one at the same time, it crashes (0.22, a null pointer).
_KNOWN = msgspec.json.Decoder(Event)

_decode = msgspec.json.Decoder().decode


def decode(line: bytes) -> Event:
    """Parse a line as an event.

    Raises:
        ValueError: the line is none, with the reason.
    """
    if line.count(b"{") + line.count(b"[") > _BRACKETS:
        raise ValueError("it is nested too deep")
    fields = _decode(line)
    event = msgspec.convert(fields, Event)
    if "index" in fields:
        raise ValueError("it has an index, which only the recorder may set")
    if event.error is not None and not isinstance(event.error[0], str):
        raise ValueError(f"its error {event.error!r} is not [kind, text]")
    if event.f in SPONTANEOUS and event.type != "info":
        raise ValueError(f"{event.f} is always info, and not {event.type}")
    return event


def must_tell(event: Event, line: bytes) -> None:
    """Raise ValueError if an event of a program in another language lacks a required field."""
    value = _decode(line).get("value") or {}
    for name in (_TELLS if event.type == "ok" else _NAMES).get(event.f, ()):
        must = f"every {event.type} of {event.f} must have {name!r}"
        if name not in value:
            raise ValueError(f"{must}, and this one does not")
        if value[name] is None and name not in _NULLABLE:
            raise ValueError(f"{must}, and here it is null")
