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
from random import Random
from typing import Any

from kazoo.protocol import serialization as jute
from kazoo.security import ACL, Id

from tests.hunt.models.zookeeper_sides import Modelled, Real, Side

RECORD = Path(__file__).parent / "zookeeper-3.8.json"
CONNECTIONS = 3
PING, NOTICE, AUTH = -2, -1, -4
_PING = struct.pack(">ii", PING, 11)
_SET_WATCHES = 101
ANYONE = ACL(31, Id("world", "anyone"))
ACLS = (
    [ANYONE], [ANYONE], [ANYONE], [ACL(1, Id("world", "anyone"))], [ACL(31, Id("auth", ""))],
    [ACL(15, Id("world", "anyone")), ACL(31, Id("digest", "a:fXDDH+yK6BIIZ7DdpFqaYu2wZOQ="))],
    [ACL(31, Id("digest", "no colon"))], [], [ACL(31, Id("unknown", "x"))], [ANYONE, ANYONE],
)  # fmt: skip
NAMES = ("a", "b", "c", "a/x", "a/y", "b/x", "a/x/1", "long-name", "é")
ODD = ("a/", "a//x", "a/../b", "./a", "a\x01", "")
Step = list[Any]


class Draw(Random):
    """Draws paths below one folder."""

    folder = "/d"


def drawn(seed: int, count: int, folder: str = "/d") -> list[Step]:
    """Draw a dialogue about a folder. Each step is a list that JSON can have."""
    random = Draw(seed)
    random.folder = folder
    steps: list[Step] = [["open", number] for number in range(CONNECTIONS)]
    steps.append(["request", 0, *packed(jute.Create(folder, b"", [ANYONE], 0))])
    steps += [_step(random) for _ in range(count)]
    return steps


def _step(random: Draw) -> Step:
    number = random.randrange(CONNECTIONS)
    if random.random() < 0.06:
        what = random.choice(("close", "drop", "again", "again", "wrong", "later", "over"))
        return [what, number, random.randrange(CONNECTIONS)]
    return ["request", number, *packed(_request(random))]


def packed(request: Any) -> tuple[int, str]:
    """Return the type of a request, and its record in hexadecimal digits."""
    if isinstance(request, tuple) and not hasattr(request, "serialize"):
        type, record = request
        return type, bytes(record).hex()
    return request.type, bytes(request.serialize()).hex()


def _path(random: Draw) -> str:
    if random.random() < 0.04:
        return f"{random.folder}/{random.choice(ODD)}"
    if random.random() < 0.03:
        return random.choice(("/nowhere/x", "d", random.folder))
    return f"{random.folder}/{random.choice(NAMES)}"


def _data(random: Draw) -> bytes | None:
    return random.choice((b"", b"1", b"\xff\x00", b"more data", None))


def _version(random: Draw) -> int:
    return random.choice((-1, -1, -1, 0, 1, 2, 7, -5))


def _create(random: Draw) -> Any:
    flags = random.choice(
        (0, 0, 1, 1, 2, 3, 3, 3, 7, -1) if random.random() < 0.2 else (0, 1, 2, 3)
    )
    acls = random.choice(ACLS) if random.random() < 0.15 else [ANYONE]
    kind = jute.Create2 if random.random() < 0.3 else jute.Create
    path = _path(random)
    if not path.startswith(f"{random.folder}/"):
        flags &= 1  # a real server has its own number of znodes there
    return kind(path, _data(random), acls, flags)


def _delete(random: Draw) -> Any:
    special = random.choice(("/", "/zookeeper", "/zookeeper/quota"))
    return jute.Delete(special if random.random() < 0.02 else _path(random), _version(random))


def _set(random: Draw) -> Any:
    return jute.SetData(_path(random), _data(random), _version(random))


def _multi(random: Draw) -> Any:
    draws = (_create, _delete, _set, lambda one: jute.CheckVersion(_path(one), _version(one)))
    return jute.Transaction([random.choice(draws)(random) for _ in range(random.randrange(5))])


def _request(random: Draw) -> Any:
    watched = random.random() < 0.5
    match random.randrange(16):
        case 0 | 1 | 2 | 3:
            return _create(random)
        case 4 | 5:
            return _delete(random)
        case 6:
            return _set(random)
        case 7:
            return jute.GetData(_path(random), watched)
        case 8:
            return jute.Exists(_path(random), watched)
        case 9:
            kind = random.choice((jute.GetChildren, jute.GetChildren2))
            folders = (random.folder, f"{random.folder}/a", f"{random.folder}/b", _path(random))
            return kind(random.choice(folders), watched)
        case 10 | 11:
            return _multi(random)
        case 12:
            return random.choice((jute.GetACL(_path(random)), jute.Sync(_path(random))))
        case 13:
            if random.random() < 0.5:
                return jute.SetACL(_path(random), random.choice(ACLS), _version(random))
            return _set_watches(random)
        case 14 if random.random() < 0.3:
            return jute.Auth(0, "digest", random.choice(("a:b", "c:d", "no colon")))
    return jute.GetData(_path(random), watched)


def _set_watches(random: Draw) -> tuple[int, bytearray]:
    """Set watches again, as a client does that has connected to another server; of now, or long
    ago."""
    lists = [[_path(random) for _ in range(random.randrange(3))] for _ in range(3)]
    record = bytearray(struct.pack(">q", random.choice((0, 1 << 62))))
    for paths in lists:
        record += struct.pack(">i", len(paths))
        for path in paths:
            record += jute.write_string(path)
    return _SET_WATCHES, record


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
        return ["session", timeout_ms, self._sessions.index(session), len(record)]

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
            jute.GetChildren, jute.GetChildren2, jute.Create2, jute.Sync,
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
            if header.type in (jute.Create.type, jute.Create2.type):
                path, at = jute.read_string(body, at)
                part.append(path)
            if header.type in (jute.SetData.type, jute.Create2.type):
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
        owner = self._sessions.index(stat.ephemeralOwner) if stat.ephemeralOwner else -1
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


def compare(address: tuple[str, int], seed: int, count: int) -> None:
    """Have one dialogue with a real server and with the model; raise AssertionError if they
    differ."""
    steps = drawn(seed, count, f"/fencepost-{seed}-{time.time_ns()}")
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
    steps = drawn(seed=4, count=400)
    answers = told(Real(("127.0.0.1", int(sys.argv[1]))), steps)
    print(json.dumps({"steps": steps, "told": answers}, separators=(",", ":")))
