"""The messages of PostgreSQL's protocol, version 3.0."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

Message = tuple[Any, ...]
INT = struct.Struct("!i")
SHORT = struct.Struct("!h")

PROTOCOL, SSL, GSS, CANCEL = 196608, 80877103, 80877104, 80877102
_LARGEST = 1 << 30


def framed(kind: str, body: bytes = b"") -> bytes:
    """Return a message of the server."""
    return kind.encode() + INT.pack(len(body) + 4) + body


def text(words: str) -> bytes:
    return words.encode() + b"\0"


def fields(**of: str) -> bytes:
    """Return the body of an error or a notice."""
    return b"".join(key.encode() + text(value) for key, value in of.items()) + b"\0"


def told(severity: str, code: str, message: str) -> bytes:
    return fields(S=severity, V=severity, C=code, M=message)


def described(columns: Sequence[tuple[str, int, int, int, int, int]]) -> bytes:
    """Return a RowDescription of (name, table, number, type, size, format)."""
    body = SHORT.pack(len(columns))
    for name, table, number, oid, size, how in columns:
        body += text(name) + struct.pack("!ihihih", table, number, oid, size, -1, how)
    return framed("T", body)


def row(values: Sequence[bytes | None]) -> bytes:
    body = SHORT.pack(len(values))
    for value in values:
        body += INT.pack(-1) if value is None else INT.pack(len(value)) + value
    return framed("D", body)


class Reader:
    """Reads the fields of one message."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def text(self) -> str:
        end = self._data.index(b"\0", self._at)
        found = self._data[self._at : end].decode()
        self._at = end + 1
        return found

    def number(self) -> int:
        self._at += 4
        return int(INT.unpack_from(self._data, self._at - 4)[0])

    def short(self) -> int:
        self._at += 2
        return int(SHORT.unpack_from(self._data, self._at - 2)[0])

    def char(self) -> str:
        self._at += 1
        return chr(self._data[self._at - 1])

    def value(self) -> bytes | None:
        size = self.number()
        if size < 0:
            return None
        self._at += size
        return self._data[self._at - size : self._at]

    def left(self) -> bool:
        return self._at < len(self._data)


class Decoder:
    """Decodes the messages of a client; the first has no type."""

    def __init__(self) -> None:
        self._received = b""
        self._begun = False

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that these bytes complete."""
        self._received += data
        found: list[Message] = []
        while True:
            head = 1 if self._begun else 0
            if len(self._received) < head + 4:
                return found
            size = INT.unpack_from(self._received, head)[0]
            if not 4 <= size <= _LARGEST:
                self._received = b""
                return [*found, ("malformed",)]
            if len(self._received) < head + size:
                return found
            body = self._received[head + 4 : head + size]
            kind = self._received[:head].decode("latin-1")
            self._received = self._received[head + size :]
            try:
                found.append(_message(kind, body) if kind else self._first(body))
            except (ValueError, IndexError, struct.error):
                found.append(("malformed",))

    def _first(self, body: bytes) -> Message:
        reader = Reader(body)
        code = reader.number()
        if code in (SSL, GSS):
            return ("encrypt",)
        if code == CANCEL:
            return "cancel", reader.number(), reader.number()
        self._begun = True
        settings: dict[str, str] = {}
        while (name := reader.text()) != "":
            settings[name] = reader.text()
        return "startup", code, settings


def _message(kind: str, body: bytes) -> Message:
    reader = Reader(body)
    match kind:
        case "Q":
            return "query", reader.text()
        case "P":
            name, sql = reader.text(), reader.text()
            return "parse", name, sql, tuple(reader.number() for _ in range(reader.short()))
        case "B":
            portal, name = reader.text(), reader.text()
            formats = tuple(reader.short() for _ in range(reader.short()))
            values = tuple(reader.value() for _ in range(reader.short()))
            results = tuple(reader.short() for _ in range(reader.short()))
            return "bind", portal, name, formats, values, results
        case "D" | "C":
            what = reader.char()
            return "describe" if kind == "D" else "close", what, reader.text()
        case "E":
            return "execute", reader.text(), reader.number()
        case "S":
            return ("sync",)
        case "H":
            return ("flush",)
        case "X":
            return ("terminate",)
        case _:
            return "other", kind
