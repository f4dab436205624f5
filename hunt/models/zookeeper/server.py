"""Simulates one ZooKeeper server: its connections, and the watches that they have set."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.zookeeper.connection import Connection, Host
from fencepost.hunt.models.zookeeper.ensemble import Ensemble
from fencepost.hunt.models.zookeeper.watches import Watches
from fencepost.hunt.sim.network import Request, Session, Wire
from fencepost.hunt.sim.unknown import Unknown


class ZooKeeperServer(Host):
    """A server of an ensemble. `kept`: it logs each change on its disk before the answer."""

    __slots__ = ("_connections", "_waiting")

    port = 2181
    duplex = True

    def __init__(self, name: str, index: int, ensemble: Ensemble) -> None:
        super().__init__(name, index)
        self.kept = True
        self.ensemble = ensemble
        # By session.
        self._connections: dict[int, Connection] = {}
        self._waiting: dict[Connection, None] = {}
        ensemble.add(self)

    # Connections.

    def session(self) -> Session:
        return Connection(self)

    def handle(self, command: tuple[Any, ...]) -> Any:
        raise Unknown("the model of ZooKeeper speaks with clients over their own sockets only")

    def wait(self, request: Request) -> None:
        raise AssertionError("no request waits at its socket")

    def touch(self, session: int, timeout_ms: int) -> bool:
        return self.ensemble.touch(session, timeout_ms, self.index)

    def begun(self, connection: Connection) -> None:
        self._connections[connection.session] = connection

    def waits(self, connection: Connection) -> None:
        self._waiting[connection] = None

    def proceed(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for connection in waiting:
            connection.proceed()

    def detach(self, connection: Connection) -> None:
        if self._connections.get(connection.session) is connection:
            del self._connections[connection.session]

    def gone(self, connection: Connection) -> None:
        self.watches.leave(connection)
        self._waiting.pop(connection, None)
        self.detach(connection)

    def close(self, session: int) -> None:
        connection = self._connections.get(session)
        if connection is not None:
            connection.hang_up()

    def hang_up(self) -> None:
        for connection in [*self._connections.values(), *self._waiting]:
            connection.hang_up()

    def left(self, link: Wire) -> None:
        session = getattr(link, "session", None)
        if isinstance(session, Connection):
            self.gone(session)

    # Crashes.

    def _forget_connections(self) -> None:
        self.watches = Watches()
        self._connections.clear()
        self._waiting.clear()

    def crash(self, power: bool) -> None:
        self.up = False
        self.boots += 1
        self._forget_connections()
        self.ensemble.network.broken(self)
        self.ensemble.crashed(self)

    def start(self) -> None:
        self.up = True
        self.paused_until = 0
        self.ensemble.started(self)

    def forget(self) -> None:
        self._forget_connections()
        self.ensemble.forget()
