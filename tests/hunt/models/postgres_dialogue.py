"""Random dialogues of several connections with PostgreSQL, real or modelled, message by message.

A step is [connection, what, ...]: `query` sends SQL as a simple query, `extended` with parameters,
`cancel` cancels its statement, `drop` closes it. After a step each side reports the
messages to its connections, and which of them wait for a lock.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Iterator
from heapq import heappop
from pathlib import Path
from typing import Any, Protocol

from fencepost.hunt.models.postgres.connection import Connection
from fencepost.hunt.models.postgres.server import PostgresServer
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.world import MS, Node, World
from tests.hunt.models.postgres_statements import Step, step_of

RECORD = Path(__file__).parent / "postgres-15.json"
DEADLOCK_MS = 100
"""deadlock_timeout of the real server, and of the model."""
WAITS_S = 20.0


def startup() -> bytes:
    body = struct.pack("!i", 196608)
    for word in ("user", "postgres", "database", "postgres", "application_name", "dialogue"):
        body += word.encode() + b"\0"
    return struct.pack("!i", len(body) + 5) + body + b"\0"


def framed(kind: str, body: bytes) -> bytes:
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


def sent(step: Step) -> bytes:
    """Return the bytes of a step."""
    match step[1:]:
        case ["query", sql]:
            return framed("Q", sql.encode() + b"\0")
        case ["extended", sql, values]:
            bound = struct.pack("!h", len(values))
            for one in values:
                bound += struct.pack("!i", -1) if one is None else (
                    struct.pack("!i", len(one)) + one.encode()
                )  # fmt: skip
            return (
                framed("P", b"\0" + sql.encode() + b"\0\0\0")
                + framed("B", b"\0\0\0\0" + bound + b"\0\0")
                + framed("D", b"S\0")
                + framed("E", b"\0" + struct.pack("!i", 0))
                + framed("S", b"")
            )
        case _:
            raise AssertionError(step)


class Reader:
    """Splits the bytes of a server into messages, without those that differ each time."""

    def __init__(self) -> None:
        self._data = b""
        self.ready = False
        self.key: tuple[int, int] = (0, 0)

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        self._data += data
        while len(self._data) >= 5:
            size = struct.unpack_from("!i", self._data, 1)[0]
            if len(self._data) < size + 1:
                return
            kind, body = self._data[:1].decode(), self._data[5 : size + 1]
            self._data = self._data[size + 1 :]
            self.ready = kind == "Z"
            if kind == "K":
                self.key = struct.unpack("!ii", body)
            elif kind not in "SR":
                yield [kind, *_fields(kind, body)]


def _fields(kind: str, body: bytes) -> list[Any]:
    if kind in "EN":
        parts = {one[:1].decode(): one[1:].decode() for one in body.split(b"\0") if one}
        return [parts["V"], parts["C"], parts["M"]]
    if kind == "T":
        found, at = [], 2
        for _ in range(struct.unpack_from("!h", body)[0]):
            end = body.index(b"\0", at)
            place, oid, size = struct.unpack_from("!hih", body, end + 5)
            found.append([body[at:end].decode(), place, oid, size])
            at = end + 19
        return found
    return [body.decode("latin-1")]


class Side(Protocol):
    """A server, real or not, with numbered connections."""

    def step(self, step: Step) -> dict[str, Any]: ...


class Granted(list[Any]):
    """The sessions whose locks have been granted. `order`: which one of them proceeds next, each
    time that there are several; the first one at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[int] = []

    def pop(self, index: Any = 0) -> Any:
        chosen = self.order.pop(0) if len(self) > 1 and self.order else 0
        return super().pop(min(chosen, len(self) - 1))


class Modelled:
    """The model, in a world without faults."""

    def __init__(self) -> None:
        self.world = World()
        self.server = PostgresServer("postgres-1", 0, Network(self.world, None))
        self.granted = self.server.locks.granted = Granted()
        self._connections: dict[int, tuple[Connection, _Line, Reader]] = {}
        self._waited: set[int] = set()

    def _open(self, number: int) -> tuple[Connection, _Line, Reader]:
        if number not in self._connections:
            connection, line = Connection(self.server), _Line()
            connection.line = line
            self._connections[number] = connection, line, Reader()
            self._send(connection, startup())
            list(self._connections[number][2].feed(line.taken()))
            assert connection.backend is not None
            connection.backend.settings.set("deadlock_timeout", str(DEADLOCK_MS))
        return self._connections[number]

    def _send(self, connection: Connection, data: bytes) -> None:
        for command in connection.commands(data):
            connection.execute(self.server, command)

    def step(self, step: Step) -> dict[str, Any]:
        number, what = step[:2]
        connection, _line, reader = self._open(number)
        if what == "cancel":
            assert connection.backend is not None
            self.server.cancel(connection.backend.pid, connection.backend.secret)
        elif what == "drop":
            del self._connections[number]
            connection.left()
        else:
            reader.ready = False
            self._send(connection, sent(step))
        self._pass(2 * DEADLOCK_MS)
        told: dict[str, Any] = {}
        for other, (_, its, its_reader) in sorted(self._connections.items()):
            found = list(its_reader.feed(its.taken()))
            if not its.open:
                found.append(["closed"])
            if found:
                told[str(other)] = found
        gone = [n for n, (_, its, _) in self._connections.items() if not its.open]
        for one in gone:
            del self._connections[one]
        return told

    def _pass(self, ms: int) -> None:
        world, end = self.world, self.world.now + ms * MS
        while world.queue and world.queue[0][0] <= end:
            world.now, _, event = heappop(world.queue)
            if not event.off:
                event.due()
        world.now = end

    def waiting(self) -> list[int]:
        return sorted(n for n, (_, _, reader) in self._connections.items() if not reader.ready)


class _Line:
    broken = False

    def __init__(self) -> None:
        self.open = True
        self.client = Node("dialogue", 0)
        self._said = b""

    def say(self, data: bytes) -> None:
        self._said += data

    def hang_up(self) -> None:
        self.open = False

    def taken(self) -> bytes:
        found, self._said = self._said, b""
        return found


class Real:
    """A real server, on which another connection sees which sessions wait."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._sockets: dict[int, tuple[socket.socket, Reader]] = {}
        self._monitor, self._monitored = self._connect()

    def _connect(self) -> tuple[socket.socket, Reader]:
        made = socket.create_connection(self._address, WAITS_S)
        reader = Reader()
        made.sendall(startup())
        while not reader.ready:
            list(reader.feed(made.recv(65536)))
        return made, reader

    def ask(self, sql: str) -> list[str]:
        """Return the first column of a query's rows."""
        reader = self._monitored
        reader.ready = False
        self._monitor.sendall(framed("Q", sql.encode() + b"\0"))
        found: list[str] = []
        while not reader.ready:
            for message in reader.feed(self._monitor.recv(65536)):
                if message[0] == "E":
                    raise AssertionError(message)
                if message[0] == "D":
                    found.append(message[1][6:])
        return found

    def _blocked(self) -> set[int]:
        rows = self.ask("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        pids = {int(one) for one in rows}
        return {n for n, (_, reader) in self._sockets.items() if reader.key[0] in pids}

    def step(self, step: Step) -> dict[str, Any]:
        number, what = step[:2]
        if number not in self._sockets:
            self._sockets[number] = self._connect()
        its, reader = self._sockets[number]
        if what == "cancel":
            with socket.create_connection(self._address, WAITS_S) as other:
                other.sendall(struct.pack("!iiii", 16, 80877102, *reader.key))
                other.recv(1)
        elif what == "drop":
            waits = self._blocked()
            its.close()
            del self._sockets[number]
            pid = reader.key[0]
            self._until(lambda: number in waits or not self.ask(
                f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"
            ))  # fmt: skip
        else:
            reader.ready = False
            its.sendall(sent(step))
        return self._settled()

    def _until(self, done: Any) -> None:
        end = time.monotonic() + WAITS_S
        while not done():
            assert time.monotonic() < end, "the server does not get on"
            time.sleep(0.005)

    def _settled(self) -> dict[str, Any]:
        """Return all messages, once all sessions have answered or wait for longer than a deadlock
        takes."""
        told: dict[str, Any] = {}
        quiet_since = time.monotonic()
        end = quiet_since + WAITS_S
        before: set[int] = set()
        while True:
            if self._receive(told):
                quiet_since = time.monotonic()
            silent = {n for n, (_, reader) in self._sockets.items() if not reader.ready}
            blocked = self._blocked() if silent else set()
            if blocked != before or silent != blocked:
                quiet_since, before = time.monotonic(), blocked
            least = 3 * DEADLOCK_MS / 1000 if blocked else 0.0
            rests = silent == blocked and time.monotonic() - quiet_since >= least
            if rests and not self._receive(told):
                return dict(sorted(told.items()))
            assert time.monotonic() < end, f"no answer: {silent}, {blocked}"
            time.sleep(0.003)

    def _receive(self, told: dict[str, Any]) -> bool:
        some = False
        for number, (its, reader) in list(self._sockets.items()):
            its.setblocking(False)
            try:
                data = its.recv(65536)
            except BlockingIOError:
                continue
            finally:
                its.setblocking(True)
            some = True
            found = list(reader.feed(data)) if data else [["closed"]]
            if not data:
                del self._sockets[number]
            if found:
                told.setdefault(str(number), []).extend(found)
        return some

    def waiting(self) -> list[int]:
        return sorted(n for n, (_, reader) in self._sockets.items() if not reader.ready)

    def close(self) -> None:
        for its, _ in self._sockets.values():
            its.close()
        self.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                 "WHERE application_name = 'dialogue' AND pid <> pg_backend_pid()")  # fmt: skip
        self._until(lambda: not self.ask(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'dialogue' "
            "AND pid <> pg_backend_pid()"
        ))  # fmt: skip
        self._monitor.close()


SETUP = (
    "DROP TABLE IF EXISTS t, u",
    "DROP SEQUENCE IF EXISTS s",
    "CREATE TABLE t (id int PRIMARY KEY, owner text, n bigint DEFAULT 0, until timestamptz)",
    "CREATE TABLE u (a int, b text NOT NULL, note varchar(5), UNIQUE (a, b))",
    "CREATE SEQUENCE s",
    "INSERT INTO t (id, owner) VALUES (1, 'x'), (2, 'y'), (3, NULL)",
)


Done = list[tuple[Step, tuple[int, ...], dict[str, Any]]]
"""The steps of a dialogue, with the order in which sessions proceeded, and their answers."""
ORDERS = ((), (1,), (2,), (0, 1), (1, 1), (2, 1))


def compare(address: tuple[str, int], seed: int, steps: int) -> Done:
    """Play a random dialogue with both sides; raise AssertionError at the first difference.

    If a step wakes several other sessions, their order is the scheduler's: any order will do. If
    none does though the same sessions were woken, the dialogue ends.
    """
    rng = random.Random(seed)
    real, model = Real(address), Modelled()
    done: Done = []
    try:
        for sql in SETUP:
            step = [0, "query", sql]
            done.append((step, (), real.step(step)))
            model.step(step)
        for number in range(steps):
            step = step_of(rng, real.waiting())
            told, answered, order = real.step(step), model.step(step), ()
            if answered != told and (found := _other_order(done, step, told)):
                model, order = found
            elif answered != told and _woke_several(step, told, answered):
                break
            else:
                assert answered == told, (
                    f"seed {seed}, step {number}: {step}\nreal:  {told}\nmodel: {answered}\n"
                    "before: " + "\n".join(map(str, done[-12:]))
                )
            assert model.waiting() == real.waiting(), f"seed {seed}, step {number}: {step}"
            done.append((step, order, told))
    finally:
        real.close()
    return done


def _woke_several(step: Step, told: dict[str, Any], answered: dict[str, Any]) -> bool:
    return len(told.keys() - {str(step[0])}) > 1 and answered.keys() == told.keys()


def _other_order(
    done: Done, step: Step, told: dict[str, Any]
) -> tuple[Modelled, tuple[int, ...]] | None:
    """Return the model after a dialogue whose last step it answers as the server has, with the
    order in which the sessions of this step have proceeded."""
    for order in ORDERS[1:]:
        model = Modelled()
        for before, its_order, _ in done:
            model.granted.order = list(its_order)
            model.step(before)
        model.granted.order = list(order)
        if model.step(step) == told:
            return model, order
    return None
