"""One line of a client as an event, by the rules of the history that it goes into.

A line that the history's reader does not understand would make the whole history unreadable, so
each is decoded as a whole before it is recorded: a part that is only skipped may hold anything.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from fencepost.checker.history import SPONTANEOUS

# Numbers that a double and a signed word of 64 bits hold are safe with every reader.
Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Process = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
# Brackets in a line, in strings as well: no event has many, and a reader's stack is not endless.
_BRACKETS = 200


class Value(msgspec.Struct):
    """What is asked and answered (docs/protocol.md), as far as a checker reads it."""

    lock: str | None = None
    resource: str | None = None
    mode: str | None = None
    ttl: Number | None = None
    hold: str | None = None
    token: Number | None = None
    minor: Number | None = None
    deadline: Number | None = None
    wakeups: Number | None = None
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


_decode = msgspec.json.Decoder().decode


def decode(line: bytes) -> Event:
    """A line as an event.

    Raises:
        ValueError: with the reason, where the line is none.
    """
    if line.count(b"{") + line.count(b"[") > _BRACKETS:
        raise ValueError("it is nested too deep")
    fields = _decode(line)
    event = msgspec.convert(fields, Event)
    if "index" in fields:
        raise ValueError("it has an index, which is the recorder's to give")
    if event.error is not None and not isinstance(event.error[0], str):
        raise ValueError(f"its error {event.error!r} is not [kind, text]")
    if event.f in SPONTANEOUS and event.type != "info":
        raise ValueError(f"{event.f} is always info, and not {event.type}")
    return event
