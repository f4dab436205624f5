"""A connection to a PostgreSQL server: the simple queries of protocol 3.0, on a plain socket.

libpq makes its connections outside of Python, so a hunt cannot simulate it. fencepost's own locks
need a few queries without TLS and without a password, so they speak the protocol by themselves.
The messages: PostgreSQL's documentation, "Message Formats".
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from contextlib import suppress

Rows = list[list[str | None]]

_VERSION = 196608  # 3.0
_PROBES = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 2}
"""A server that has gone silently ends the connection after 3 s on this side as well. Not every
system has these options."""


class Refused(Exception):
    """The server answered with an error; `code` is its SQLSTATE."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class PostgresLink:
    """An open connection. `settings` are of its session. After OSError or a fatal Refused it is
    unusable: close it."""

    def __init__(
        self, address: tuple[str, int], timeout_s: float, settings: Mapping[str, object]
    ) -> None:
        """Connect. Raises OSError, or Refused by the server."""
        self._timeout_s = timeout_s
        self._socket = socket.create_connection(address, timeout=timeout_s)
        try:
            self._set_options()
            options = " ".join(f"-c {name}={value}" for name, value in settings.items())
            given = {"options": options} if options else {}
            self._startup({"user": "postgres", "database": "postgres", **given})
        except BaseException:
            self.close()
            raise

    def _set_options(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _PROBES.items():
            if hasattr(socket, name):
                self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def _startup(self, given: Mapping[str, str]) -> None:
        words = b"".join(_text(name) + _text(value) for name, value in given.items()) + b"\0"
        self._socket.sendall(struct.pack("!ii", 8 + len(words), _VERSION) + words)
        self._answers()

    def ask(self, sql: str, wait_s: float = 0.0) -> Rows:
        """Execute statements; return the rows of all, in text. `wait_s`: how long they may wait for
        locks, in addition to the timeout. Raises OSError, or Refused."""
        self._socket.settimeout(self._timeout_s + wait_s)
        query = _text(sql)
        self._socket.sendall(b"Q" + struct.pack("!i", 4 + len(query)) + query)
        return self._answers()

    def _answers(self) -> Rows:
        """Read until the server is ready for the next query."""
        rows: Rows = []
        refused = None
        while True:
            kind, size = struct.unpack("!ci", self._read(5))
            body = self._read(size - 4)
            if kind == b"D":
                rows.append(_row(body))
            elif kind == b"E":
                refused = _refused(body)
                if refused.code.startswith("57P"):  # it ends the session
                    raise refused
            elif kind == b"R" and body != bytes(4):
                raise OSError("the server asks for a password")
            elif kind == b"Z":
                if refused is not None:
                    raise refused
                return rows

    def _read(self, size: int) -> bytes:
        read = b""
        while len(read) < size:
            more = self._socket.recv(size - len(read))
            if not more:
                raise ConnectionError("the server closed the connection")
            read += more
        return read

    def close(self) -> None:
        """End the session. Without an answer: the server may be gone."""
        with suppress(OSError):
            self._socket.sendall(b"X" + struct.pack("!i", 4))
        self._socket.close()


def quoted(text: str) -> str:
    """Return a string constant of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _text(words: str) -> bytes:
    return words.encode() + b"\0"


def _row(body: bytes) -> list[str | None]:
    row: list[str | None] = []
    at = 2
    for _ in range(struct.unpack_from("!h", body)[0]):
        size = struct.unpack_from("!i", body, at)[0]
        at += 4
        row.append(None if size < 0 else body[at : at + size].decode())
        at += max(size, 0)
    return row


def _refused(body: bytes) -> Refused:
    fields = {one[:1]: one[1:].decode(errors="replace") for one in body.split(b"\0") if one}
    return Refused(fields.get(b"C", ""), fields.get(b"M", "an error without a message"))
