"""One connection to a simulated API server: requests of HTTP, and watches whose events the server
sends when they come."""

from __future__ import annotations

from typing import Any, Protocol, cast

from fencepost.hunt.models import http_session
from fencepost.hunt.models.http_session import Command
from fencepost.hunt.models.kubernetes.watches import Watch, is_watch
from fencepost.hunt.sim.network import Line, Server

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_LAST = b"0\r\n\r\n"


class Watching(Protocol):
    """A server at which watches begin."""

    def watched(self, path: str, query: str, session: Session) -> bytes:
        """Begin a watch on a connection, and return its first events."""


class Session(http_session.Session):
    """The server's side of a connection."""

    def __init__(self) -> None:
        super().__init__("Kubernetes")
        self.unasked = False
        self.line: Line | None = None

    def commands(self, data: bytes) -> list[Command]:
        found = super().commands(data)
        self.unasked = self.unasked or any(_watches(command) for command in found)
        return found

    def execute(self, server: Server, command: Command) -> Any:
        if not _watches(command):
            return super().execute(server, command)
        _, path, query, *_ = command
        return 200, cast(Watching, server).watched(path, query, self)

    def encoded(self, command: Command, reply: Any) -> bytes:
        if not _watches(command):
            return super().encoded(command, reply)
        return _HEAD + _chunk(reply[1])

    def say(self, watch: Watch, now_ns: int) -> bool:
        """Send the new events of a watch, and its end; return whether more may follow."""
        assert self.line is not None, "a connection with a watch has a line"
        if not self.line.open:
            return False
        events, over = watch.take(now_ns), now_ns >= watch.ends_ns
        if events or over:
            self.line.say(_chunk(events) + (_LAST if over else b""))
        return not over


def _watches(command: Command) -> bool:
    return is_watch(command[0], command[2])


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n" if data else b""
