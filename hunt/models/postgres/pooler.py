"""Simulates PgBouncer 1.18 with `pool_mode = transaction`, in front of a PostgreSQL server on the
same machine.

A client has a session of the server from the first message of a transaction until its end. The
next transaction may get another session. A session that is returned is not reset
(`server_reset_query` is for session pooling): it keeps advisory locks and settings, and the next
client has them. The session that was returned last is given out first.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from fencepost.hunt.models.postgres.backend import Backend
from fencepost.hunt.models.postgres.connection import Connection
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.messages import INT, PROTOCOL, Message, framed, told
from fencepost.hunt.models.postgres.server import PostgresServer
from fencepost.hunt.sim.network import Network, Session
from fencepost.hunt.sim.unknown import Unknown

_POOL = 20
"""The number of sessions for a user and a database (default_pool_size)."""
_IGNORED = ("client_encoding", "datestyle", "timezone", "standard_conforming_strings",
            "application_name")  # fmt: skip


class PgBouncer(PostgresServer):
    """A PostgreSQL server with its pooler. `idle`: sessions that no client has, the last returned
    one at the end; `queue`: clients that wait for one."""

    __slots__ = ("clients", "idle", "open_sessions", "queue")

    port = 6432

    def __init__(self, name: str, index: int, network: Network) -> None:
        super().__init__(name, index, network)
        self.clients = 0
        self.session_ends = None  # a session is no client's
        self._empty()

    def _empty(self) -> None:
        self.idle: list[Pooled] = []
        self.queue: deque[Client] = deque()
        self.open_sessions = 0

    def session(self) -> Session:
        return Client(self)

    def crash(self, power: bool) -> None:
        self._empty()
        super().crash(power)

    def forget(self) -> None:
        self._empty()
        super().forget()

    def take(self, client: Client) -> Pooled | None:
        """Return a session for a client; None: it has to wait."""
        for one in reversed(self.idle):
            if (one.backend.user, one.backend.database) == (client.user, client.database):
                self.idle.remove(one)
                return one
        if self.open_sessions >= _POOL:
            self.queue.append(client)
            return None
        self.open_sessions += 1
        return Pooled(self, client.user, client.database)

    def give_back(self, one: Pooled) -> None:
        self.idle.append(one)
        if self.queue:
            self.queue.popleft().forward()

    def lost(self, one: Pooled) -> None:
        self.open_sessions -= 1
        if one in self.idle:
            self.idle.remove(one)


class Pooled:
    """A session of the server, and the client that has it."""

    def __init__(self, pool: PgBouncer, user: str, database: str) -> None:
        self.client: Client | None = None
        self._pool = pool
        self.backend: Backend = pool.connect(user, database, self._said, self._ended)
        self.backend.greet({})

    def _said(self, data: bytes) -> None:
        client = self.client
        if client is None:
            return  # its own greeting
        client.say(data)
        if data.endswith(framed("Z", b"I")) and client.may_return:
            client.pooled = self.client = None
            self._pool.give_back(self)

    def _ended(self) -> None:
        self._pool.lost(self)
        if self.client is not None:
            client, self.client = self.client, None
            client.pooled = None
            client.hang_up()


class Client(Connection):
    """A client's connection to the pooler. `waiting`: messages for which it has no session yet."""

    def __init__(self, server: PgBouncer) -> None:
        super().__init__(server)
        self.pool = server
        self.user = self.database = ""
        self.pooled: Pooled | None = None
        self._waiting: deque[Message] = deque()
        self._syncs = 0
        self._begun = False
        server.clients += 1
        self._number = server.clients

    @property
    def may_return(self) -> bool:
        """Whether the server has answered all that the client has asked."""
        self._syncs = max(0, self._syncs - 1)
        return self._syncs == 0

    def execute(self, server: Any, command: Message) -> Any:
        match command:
            case ("encrypt",):
                self.say(b"N")
            case ("cancel", number, _):
                self._cancel(number)
                self.hang_up()
            case ("startup", code, given):
                self._start(code, given)
            case ("terminate",):
                self.left()
                self.hang_up()
            case _ if self._begun:
                self._waiting.append(command)
                self.forward()
            case _:
                raise Unknown("the client sends bytes that are no message of PostgreSQL's protocol")
        return True

    def _cancel(self, number: int) -> None:
        for one in self.pool.sessions.values():
            pooled = getattr(one.say, "__self__", None)
            client = pooled.client if isinstance(pooled, Pooled) else None
            if client is not None and client._number == number:
                self.pool.cancel(one.pid, one.secret)
                return

    def _start(self, code: int, given: dict[str, str]) -> None:
        if code != PROTOCOL:
            raise Unknown(f"the model of PgBouncer has no protocol {code >> 16}.{code & 0xFFFF}")
        given = dict(given)
        self.user = given.pop("user", "")
        self.database = given.pop("database", self.user)
        for name in given:
            if name.lower() not in _IGNORED:
                error = PgError("08P01", f"unsupported startup parameter: {name}", "FATAL")
                self.say(framed("E", told(error.severity, error.code, error.message)))
                self.hang_up()
                return
        self._begun = True
        first = self.pool.take(self)
        if first is None:
            raise Unknown("more clients than the pooler has sessions connect at once")
        self.say(framed("R", INT.pack(0)) + first.backend.parameters())
        self.say(framed("K", INT.pack(self._number) + INT.pack(0)) + framed("Z", b"I"))
        self.pool.give_back(first)

    def forward(self) -> None:
        """Pass the client's messages to its session."""
        if not self._waiting:
            return
        if self.pooled is None:
            found = self.pool.take(self) if self not in self.pool.queue else None
            if found is None:
                return
            self.pooled, found.client = found, self
        while self._waiting and self.pooled is not None:
            message = self._waiting.popleft()
            if message[0] in ("query", "sync"):
                self._syncs += 1
            self.pooled.backend.receive(message)
            if self.pooled is None and self._waiting:
                self.forward()

    def left(self) -> None:
        """Note that the client has gone: in a transaction its session ends, too."""
        if self in self.pool.queue:
            self.pool.queue.remove(self)
        pooled, self.pooled = self.pooled, None
        if pooled is not None:
            pooled.client = None
            pooled.backend.end()
            self.pool.proceed()
