"""One connection to a simulated etcd: requests to the JSON gateway, or calls of gRPC."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models import http_session
from fencepost.hunt.models.etcd import gateway
from fencepost.hunt.models.etcd.grpc import Calls, Serving
from fencepost.hunt.sim.network import Line, Server

Command = tuple[Any, ...]
_HTTP_2 = b"PRI"
"""No request of HTTP/1.1 begins so."""


class Session(http_session.Session):
    """The server's side of a connection. `unasked`: it speaks gRPC."""

    def __init__(self, server: Serving) -> None:
        super().__init__("etcd", gateway.command)
        self.unasked = False
        self.line: Line | None = None
        self._server = server
        self._first = b""
        self.calls: Calls | None = None

    def commands(self, data: bytes) -> list[Command]:
        if self.calls is None and len(self._first) < len(_HTTP_2):
            self._first += data
            if len(self._first) < len(_HTTP_2):
                return []
            data = self._first
            if data.startswith(_HTTP_2):
                self.calls, self.unasked = Calls(self._server), True
        return super().commands(data) if self.calls is None else self.calls.commands(data)

    def execute(self, server: Server, command: Command) -> Any:
        if self.calls is None:
            return super().execute(server, command)
        assert self.line is not None, "a connection of gRPC has a line"
        return self.calls.execute(self.line, command)

    def encoded(self, command: Command, reply: Any) -> bytes:
        # Calls of gRPC are answered on the line.
        return super().encoded(command, reply) if self.calls is None else b""

    def is_about_data(self, command: Command) -> bool:
        return self.calls is None or self.calls.is_about_data(command)

    def left(self) -> None:
        """Note that the client has closed the connection."""
        if self.calls is not None:
            self.calls.left()
