"""A client's answers to orders: lines that begin with {"control" (docs/protocol.md)."""

from __future__ import annotations

import msgspec

from fencepost.harness.clients.event import Number

VERSIONS = (1,)
"""Versions of the line protocol that this version of fencepost supports."""


class Ready(msgspec.Struct, tag_field="control", tag="ready"):
    """The client is up. `pid`: its pid on its node; `version`: of the protocol that it uses;
    `generates`: it runs the generator itself; `extends`: its lock has that verb;
    `promises`: those of its lock in addition to exclusion, None if it does not name them;
    `elector`: it elects a leader, which can step down if it `resigns`; `restarts`: its successor is
    a new program, with a new pid."""

    pid: Number
    version: Number = 1
    generates: bool = True
    extends: bool = True
    promises: list[str] | None = None
    elector: bool = False
    resigns: bool = True
    restarts: bool = False


class Successor(msgspec.Struct, tag_field="control", tag="successor"):
    """The program was started again, and has this pid."""

    pid: Number


class Idle(msgspec.Struct, tag_field="control", tag="idle"):
    """The client's work has ended."""


class Point(msgspec.Struct, tag_field="control", tag="point"):
    """The client is at a failpoint, and stops there. `port`: the local port of the connection that
    it uses next, if it does."""

    point: str
    port: Number = 0


class Clock(msgspec.Struct, tag_field="control", tag="clock"):
    """Bounds of the client's wall clock minus its monotonic clock, in ns."""

    low_ns: Number
    high_ns: Number


class Cancelled(msgspec.Struct, tag_field="control", tag="cancelled"):
    """The client has cancelled a call of its lock, as it was asked to. `later`: one that had not
    begun then."""

    later: bool = False


class Stopped(msgspec.Struct, tag_field="control", tag="stopped"):
    """The client does not begin the beat that it was sent, because its leader has stopped."""


class Broken(msgspec.Struct, tag_field="control", tag="broken"):
    """The client reports its own mistake, not its lock's; `why` says what to change. It ends."""

    why: str


class Cut(msgspec.Struct, tag_field="control", tag="cut"):
    """The pump dropped this many bytes of the client's output (workloads/client/spool.py)."""

    bytes: Number


class Over(msgspec.Struct, tag_field="control", tag="over"):
    """The client's program has ended, and its pump has delivered all its output.

    `code` is its exit code, or the negative number of the signal that ended it.
    """

    code: Number | None = None


Answer = Ready | Successor | Idle | Point | Clock | Cancelled | Stopped | Broken | Cut | Over

decode = msgspec.json.Decoder(Answer).decode
"""Parse a line as an answer. Raise ValueError with the reason if it is none."""


def refusal(ready: Ready, elects: bool) -> str:
    """Return why a program cannot be the client that it was started as; "" if it can. `elects`: of
    an elector."""
    if ready.version not in VERSIONS:
        return (
            f"uses version {ready.version} of the line protocol, but this fencepost supports "
            f"{', '.join(map(str, VERSIONS))}: build it with the SDK of this version, or see "
            'docs/protocol.md, "setup, and `ready`"'
        )
    if not ready.generates and ready.elector != elects:
        return f"is {'an elector: add' if ready.elector else 'a lock: omit'} --elector"
    return ""
