"""Dialogues of several sessions with ZooKeeper, to compare the model with a real server.

A dialogue is a list of steps, drawn at random: a connection is opened, dropped, opened again with
the session of before; it sends requests. After each step every connection is asked with a ping, so
that each notice of a watch has its place. kazoo's own encoder and decoder are used, which share no
code with the model. Numbers that must differ are replaced: times, the numbers of sessions, and the
changes before the dialogue.

To record again, on an empty server of one node:
python -m tests.hunt.models.zookeeper_dialogue PORT > tests/hunt/models/zookeeper-3.8.json
"""

from __future__ import annotations

import json
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kazoo.protocol import serialization as jute

from tests.hunt.models.zookeeper_drawn import ANYONE, Container, Step, drawn, packed
from tests.hunt.models.zookeeper_sides import Modelled, Real, Side

RECORD = Path(__file__).parent / "zookeeper-3.8.json"
PING, NOTICE, AUTH = -2, -1, -4
# The longest timeout of the model. A server may grant more, so that no session ends in a dialogue.
_MOST_MS = 10_000
_PING = struct.pack(">ii", PING, 11)
_CREATES = jute.Create.type, jute.Create2.type, Container.type


class Talk:
    """One dialogue with one side."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._xid = 0
        self._open: set[int] = set()
        # The sessions of the connections, with their passwords; all sessions in order.
        self._mine: dict[int, tuple[int, bytes]] = {}
        self._sessions: list[int] = []
        self._alive: dict[int, bytes] = {}
        self._base: int | None = None

    def step(self, step: Step) -> list[Any]:
        """Do a step; return what every connection has received, with the numbers replaced."""
        what, number, *more = step
        told: list[Any] = []
        if what == "request":
            if number not in self._open:
                self._connect(number)
            type, record = more[0], bytes.fromhex(more[1])
            self._xid += 1
            xid = AUTH if type == jute.Auth.type else self._xid
            self._side.send(number, struct.pack(">ii", xid, type) + record)
            told.append(self._received(number, type, record))
        else:
            told.append(self._connection(what, number, more[0] if more else 0))
        told += [self._received(one, 0, b"") for one in sorted(self._open)]
        return told

    def _connection(self, what: str, number: int, other: int) -> Any:
        if what == "close" and number in self._open:
            self._xid += 1
            self._side.send(number, struct.pack(">ii", self._xid, jute.Close.type))
            told = self._until_closed(number)
            del self._alive[self._mine.pop(number)[0]]
            return told
        if number in self._open and what not in ("over",):
            self._side.drop(number)
            self._open.discard(number)
        if what == "drop":
            return "dropped"
        session, password = self._mine.get(number, (0, bytes(16)))
        if what == "over" and other != number and {number, other} <= self._mine.keys():
            # It takes over the session of another connection, which the server closes then.
            # The other connection gets its own: an unused session would expire.
            self._mine[other], (session, password) = self._mine[number], self._mine[other]
            if number in self._open:
                self._side.drop(number)
            self._hello(number, session, password)
            told = self._answered(number)
            if other in self._open:
                self._until_closed(other)
            return told
        if what == "wrong" and session:
            password = b"wrong".ljust(16)
        zxid = (1 << 60) if what == "later" else 0
        if what == "open" or number not in self._open:
            self._hello(number, session, password, zxid)
            return self._answered(number)
        return "as before"

    def _connect(self, number: int) -> None:
        self._hello(number, *self._mine.get(number, (0, bytes(16))))
        self._answered(number)
        assert number in self._open

    def end(self) -> None:
        """End all sessions, so that none ends during a later dialogue."""
        for number in list(self._open):
            self._drop_closed(number)
        for session, password in list(self._alive.items()):
            self._mine[0] = session, password
            self._connection("again", 0, 0)
            if 0 in self._open:
                self._connection("close", 0, 0)

    def open_with(self, number: int, timeout_ms: int) -> None:
        """Open a connection with a new session of this timeout."""
        self._hello(number, 0, bytes(16), 0, timeout_ms)
        self._answered(number)

    def ask_no_more(self, number: int) -> None:
        """Send nothing more on a connection, which stays open."""
        self._open.discard(number)

    def _hello(
        self, number: int, session: int, password: bytes, zxid: int = 0, timeout_ms: int = 60_000
    ) -> None:
        record = bytes(jute.Connect(0, zxid, timeout_ms, session, password, False).serialize())
        self._side.open(number, record)
        self._open.add(number)

    def _answered(self, number: int) -> Any:
        record = self._side.receive(number)
        if record is None:
            self._drop_closed(number)
            return "closed without an answer"
        _, timeout_ms, session = struct.unpack_from(">iiq", record)
        if not timeout_ms:
            assert self._side.receive(number) is None
            self._drop_closed(number)
            return "no session"
        if session not in self._sessions:
            self._sessions.append(session)
        self._mine[number] = session, record[20:36]
        self._alive[session] = record[20:36]
        return ["session", min(timeout_ms, _MOST_MS), self._sessions.index(session), len(record)]

    def _drop_closed(self, number: int) -> None:
        self._side.drop(number)
        self._open.discard(number)

    def _until_closed(self, number: int) -> list[Any]:
        told: list[Any] = []
        while (record := self._side.receive(number)) is not None:
            told.append(self._read(record, 0, b""))
        self._drop_closed(number)
        return told

    def _received(self, number: int, type: int, sent: bytes) -> list[Any]:
        """Return the messages on a connection, until the answer to a request, or to a ping."""
        told: list[Any] = []
        if not type:
            self._side.send(number, _PING)
        while True:
            record = self._side.receive(number)
            if record is None:
                self._drop_closed(number)
                return [*told, "closed"]
            xid = struct.unpack_from(">i", record)[0]
            told.append(self._read(record, type, sent))
            if xid not in (PING, NOTICE) or (not type and xid == PING):
                return told

    # Reading answers.

    def _read(self, record: bytes, type: int, sent: bytes) -> list[Any]:
        xid, zxid, error = struct.unpack_from(">iqi", record)
        body = record[16:]
        if xid == NOTICE:
            event, _ = jute.Watch.deserialize(body, 0)
            return ["notice", list(event)]
        if type == jute.Create.type and self._base is None:
            self._base = zxid
        shown = self._zxid(zxid)
        if xid in (PING, AUTH) or error or not body:
            return ["answer", xid if xid < 0 else "", shown, error, body.hex()]
        return ["answer", "", shown, error, self._body(type, sent, body)]

    def _body(self, type: int, sent: bytes, body: bytes) -> Any:
        known = (
            jute.Create, jute.Exists, jute.GetData, jute.SetData, jute.GetACL, jute.SetACL,
            jute.GetChildren, jute.GetChildren2, jute.Create2, jute.Sync, Container,
        )  # fmt: skip
        if type == jute.Transaction.type:
            return self._multi(body)
        for kind in known:
            if kind.type == type:
                return self._plain(kind.deserialize(body, 0))
        return body.hex()

    def _multi(self, body: bytes) -> list[Any]:
        """Decode the answer to a multi; kazoo's decoder does not know all parts."""
        told: list[Any] = []
        at = 0
        while True:
            header, at = jute.MultiHeader.deserialize(body, at)
            part: list[Any] = list(header)
            if header.done:
                return [*told, part, len(body) - at]
            if header.type in _CREATES:
                path, at = jute.read_string(body, at)
                part.append(path)
            if header.type in (jute.SetData.type, *_CREATES[1:]):
                part.append(self._stat(jute.ZnodeStat(*jute.stat_struct.unpack_from(body, at))))
                at += jute.stat_struct.size
            if header.type == -1:
                part.append(jute.int_struct.unpack_from(body, at)[0])
                at += 4
            told.append(part)

    def _plain(self, found: Any) -> Any:
        if isinstance(found, jute.ZnodeStat):
            return self._stat(found)
        if isinstance(found, bytes):
            return found.hex()
        if isinstance(found, list | tuple):
            return [self._plain(one) for one in found]
        return found

    def _stat(self, stat: Any) -> list[Any]:
        owner = stat.ephemeralOwner
        if owner > 0:
            owner = self._sessions.index(owner) + 1
        changed = [self._zxid(stat.czxid), self._zxid(stat.mzxid), self._zxid(stat.pzxid)]
        # No time is compared: the model's stands still.
        rest = [stat.version, stat.cversion, stat.aversion, stat.dataLength, stat.numChildren]
        return ["stat", changed, owner, rest]

    def _zxid(self, zxid: int) -> int:
        """Return the number of a change, counted from the dialogue's first one."""
        return zxid - self._base if self._base is not None and zxid >= self._base else -1


def told(side: Side, steps: Sequence[Step]) -> list[list[Any]]:
    """Return the answers of a side to a dialogue."""
    talk = Talk(side)
    try:
        return [talk.step(step) for step in steps]
    finally:
        talk.end()


def compare(address: tuple[str, int], seed: int, count: int, containers: bool = True) -> None:
    """Have one dialogue with a real server and with the model; raise AssertionError if they
    differ. With `containers` the server must not delete any meanwhile."""
    steps = drawn(seed, count, f"/fencepost-{seed}-{time.time_ns()}", containers)
    real, modelled = Talk(Real(address)), Talk(Modelled())
    try:
        for number, step in enumerate(steps):
            theirs, mine = real.step(step), modelled.step(step)
            assert mine == theirs, f"seed {seed}, step {number}: {step}: {mine!r}, not {theirs!r}"
    finally:
        real.end()


def measured_expiry(side: Side, timeout_ms: int) -> tuple[float, float]:
    """Return bounds of how long a session lasted after its last request, in s."""
    talk = Talk(side)
    path = f"/expiry-{time.time_ns()}"
    try:
        talk.step(["open", 1])
        talk.open_with(0, timeout_ms)
        before = time.monotonic()
        talk.step(["request", 0, *packed(jute.Create(path, b"", [ANYONE], 1))])
        talk.ask_no_more(0)
        after = gone = time.monotonic()
        while talk.step(["request", 1, *packed(jute.Exists(path, False))])[0][-1][3] == 0:
            gone = time.monotonic()
            time.sleep(0.01)
        return gone - after, time.monotonic() - before
    finally:
        talk.end()


if __name__ == "__main__":
    steps = drawn(seed=37, count=400)
    answers = told(Real(("127.0.0.1", int(sys.argv[1]))), steps)
    print(json.dumps({"steps": steps, "told": answers}, separators=(",", ":")))
