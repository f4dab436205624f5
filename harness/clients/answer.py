"""What a client answers to orders: lines that begin with {"control" (docs/protocol.md)."""

from __future__ import annotations

import msgspec

VERSIONS = (1,)
"""Of the line protocol, those that are spoken here."""


class Ready(msgspec.Struct, tag_field="control", tag="ready"):
    """It is up. `pid` is its own on its node; `version`, of the protocol that it speaks;
    `generates`: it runs the generator itself; `extends`: its lock has that verb."""

    pid: int
    version: int = 1
    generates: bool = True
    extends: bool = True


class Idle(msgspec.Struct, tag_field="control", tag="idle"):
    """Its work is over."""


class Point(msgspec.Struct, tag_field="control", tag="point"):
    """It is at a failpoint, and stops itself there. `port`: the local one of the connection that it
    is about to use, where that is what comes next."""

    point: str
    port: int = 0


class Clock(msgspec.Struct, tag_field="control", tag="clock"):
    """How far its wall clock is ahead of its monotonic one: bounds, in ns."""

    low_ns: int
    high_ns: int


class Broken(msgspec.Struct, tag_field="control", tag="broken"):
    """It is wrong itself, and not its lock; `why` says what, and how it should be. It ends."""

    why: str


class Cut(msgspec.Struct, tag_field="control", tag="cut"):
    """Its pump had to leave out so many bytes of what it wrote (workloads/client/spool.py)."""

    bytes: int


class Over(msgspec.Struct, tag_field="control", tag="over"):
    """Its program has ended, and its pump has handed over all that it wrote.

    `code` is its exit code; of a signal that ended it the number, negative.
    """

    code: int | None = None


Answer = Ready | Idle | Point | Clock | Broken | Cut | Over

decode = msgspec.json.Decoder(Answer).decode
"""A line as an answer. Raises ValueError with the reason, where the line is none."""
