"""The two sides of a dialogue with ZooKeeper: a real server, and the model."""

from __future__ import annotations

import errno
import socket
import struct
from contextlib import closing
from typing import Any, Protocol

from fencepost.hunt.models.zookeeper.connection import Connection
from fencepost.hunt.models.zookeeper.ensemble import Ensemble
from fencepost.hunt.models.zookeeper.server import ZooKeeperServer
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.world import World

REPLY_S = 30.0


class Side(Protocol):
    """A server, real or not, with numbered connections."""

    def open(self, number: int, hello: bytes) -> None: ...
    def send(self, number: int, record: bytes) -> None: ...
    def drop(self, number: int) -> None: ...
    def receive(self, number: int) -> bytes | None:
        """Return the next record; None: the server has closed the connection."""


class Real:
    """A real server."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._sockets: dict[int, socket.socket] = {}

    def open(self, number: int, hello: bytes) -> None:
        self._sockets[number] = socket.create_connection(self._address, REPLY_S)
        self.send(number, hello)

    def send(self, number: int, record: bytes) -> None:
        self._sockets[number].sendall(struct.pack(">i", len(record)) + record)

    def drop(self, number: int) -> None:
        """Close a connection, and wait until the server has closed its end.

        Until then a later connection must not take over its session. The server forgets the
        connection of a session by the session's number (removeCnxnFromSessionMap), so it might
        forget the later one, and not close that if the session moves again.
        """
        with closing(self._sockets.pop(number)) as link:
            try:
                link.shutdown(socket.SHUT_WR)
                while link.recv(65536):
                    pass
            except OSError as error:
                # The server has reset it.
                if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
                    raise

    def receive(self, number: int) -> bytes | None:
        head = self._some(number, 4)
        return None if head is None else self._some(number, struct.unpack(">i", head)[0])

    def _some(self, number: int, count: int) -> bytes | None:
        found = b""
        while len(found) < count:
            try:
                piece = self._sockets[number].recv(count - len(found))
            except ConnectionResetError:
                piece = b""
            if not piece:
                return None
            found += piece
        return found


class Line:
    """The model's end of a connection."""

    def __init__(self) -> None:
        self.open = True
        self.client: Any = None
        self.said: list[bytes] = []

    def say(self, data: bytes) -> None:
        self.said.append(data)

    def hang_up(self) -> None:
        self.open = False


class Modelled:
    """The model; time stands still."""

    def __init__(self) -> None:
        self.world = World()
        self.server = ZooKeeperServer("zookeeper-1", 0, Ensemble(Network(self.world, None)))
        self._connections: dict[int, tuple[Connection, Line]] = {}

    def open(self, number: int, hello: bytes) -> None:
        connection, line = self.server.session(), Line()
        assert isinstance(connection, Connection)
        connection.line = line
        self._connections[number] = connection, line
        self.send(number, hello)

    def send(self, number: int, record: bytes) -> None:
        connection, line = self._connections[number]
        for command in connection.commands(struct.pack(">i", len(record)) + record):
            if line.open:
                connection.execute(self.server, command)

    def drop(self, number: int) -> None:
        connection, _ = self._connections.pop(number)
        self.server.gone(connection)

    def receive(self, number: int) -> bytes | None:
        _, line = self._connections[number]
        if not line.said:
            assert not line.open, "the model answers nothing"
            return None
        return line.said.pop(0)[4:]
