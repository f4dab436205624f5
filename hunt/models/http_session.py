"""Decodes HTTP/1.1 requests on one connection, and encodes the answers (RFC 9112).

A client sends them through its own HTTP library. Bodies have a Content-Length; a request with
chunks raises Unknown, as one of HTTP/2 does.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

from fencepost.hunt.sim.network import Line, Server
from fencepost.hunt.sim.unknown import Unknown

_END = b"\r\n\r\n"

_HTTP_2 = b"PRI * HTTP/2.0"

Command = tuple[Any, ...]
Heard = tuple[str, str, str, str, bytes]
"""A request: method, path, query, media type and body."""


class Session:
    """The server's side of a connection. `over`: it closes the connection after its last reply.

    `name` is the server's in errors; `command` makes a command of the model from a request.
    """

    unasked = False
    line: Line | None = None

    def __init__(self, name: str, command: Callable[[Heard], Command] = tuple) -> None:
        self.over = False
        self._name = name
        self._command = command
        self._rest = b""
        self._closes = False

    def commands(self, data: bytes) -> list[Command]:
        """Return the requests that these bytes complete."""
        self._rest += data
        found = []
        while (command := self._next()) is not None:
            found.append(command)
        return found

    def _next(self) -> Command | None:
        if self._rest.startswith(_HTTP_2):
            raise Unknown(f"the model of {self._name} has no HTTP/2, and so no gRPC")
        head, end, rest = self._rest.partition(_END)
        if not end:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        fields = dict(_field(line) for line in lines)
        if "transfer-encoding" in fields:
            raise Unknown(f"the model of {self._name} reads no request in chunks")
        length = int(fields.get("content-length", 0))
        if len(rest) < length:
            return None
        self._rest = rest[length:]
        self._closes = fields.get("connection", "").lower() == "close"
        parts = urlsplit(target)
        media = fields.get("content-type", "").partition(";")[0].strip()
        return self._command((method, unquote(parts.path), parts.query, media, rest[:length]))

    def execute(self, server: Server, command: Command) -> Any:
        self.over = self._closes
        return server.handle(command)

    def encoded(self, command: Command, reply: Any) -> bytes:
        status, body = reply
        words = HTTPStatus(status).phrase
        head = (
            f"HTTP/1.1 {status} {words}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + (b"" if command[0] == "HEAD" else body)

    def is_about_data(self, command: Command) -> bool:
        return True


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()
