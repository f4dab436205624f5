"""Reads and writes the types of Jute, ZooKeeper's encoding of records."""

from __future__ import annotations

from struct import Struct

INT, LONG, BOOL = Struct(">i"), Struct(">q"), Struct(">?")


class TooShort(Exception):
    """A record ends before its last field."""


class Reader:
    """Reads the fields of a record, in order."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._at = at

    @property
    def over(self) -> bool:
        return self._at >= len(self._data)

    def _next(self, kind: Struct) -> int:
        begin = self._at
        self._at += kind.size
        if self._at > len(self._data):
            raise TooShort
        found: int = kind.unpack_from(self._data, begin)[0]
        return found

    def number(self) -> int:
        return self._next(INT)

    def long(self) -> int:
        return self._next(LONG)

    def flag(self) -> bool:
        return bool(self._next(BOOL))

    def buffer(self) -> bytes | None:
        length = self.number()
        if length < 0:
            return None
        begin = self._at
        self._at += length
        if self._at > len(self._data):
            raise TooShort
        return self._data[begin : self._at]

    def text(self) -> str | None:
        found = self.buffer()
        return None if found is None else found.decode(errors="replace")

    def texts(self) -> list[str]:
        return [self.text() or "" for _ in range(self.number())]


def buffer(data: bytes | None) -> bytes:
    return INT.pack(-1) if data is None else INT.pack(len(data)) + data


def text(words: str | None) -> bytes:
    return buffer(None if words is None else words.encode())


def texts(words: list[str]) -> bytes:
    return INT.pack(len(words)) + b"".join(map(text, words))


def framed(data: bytes) -> bytes:
    return INT.pack(len(data)) + data
