"""Splits a stream that arrives in chunks into lines, and bounds the memory that a line can take."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 1 << 20
"""Maximum length of a client's line in bytes, more than a thousand times that of any event."""
_KEPT = 1 << 12


@dataclass(frozen=True)
class TooLong:
    """A line longer than the bound: its start and its length in bytes."""

    start: bytes
    length: int


class Lines:
    """Collects chunks and returns lines of up to `longest` bytes. Reads each byte once, however
    many chunks a line has."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._length = 0

    def take(self, chunk: bytes) -> list[bytes | TooLong]:
        """Add a chunk; return the lines that end in it."""
        *ends, rest = chunk.split(b"\n")
        found = [self._ended(end) for end in ends]
        self._add(rest)
        return found

    def rest(self) -> bytes | TooLong:
        """Return what followed the end of the last line."""
        return self._ended(b"")

    def _ended(self, end: bytes) -> bytes | TooLong:
        self._add(end)
        whole, length = b"".join(self._parts), self._length
        self._parts, self._length = [], 0
        return whole if length <= self._longest else TooLong(whole[:_KEPT], length)

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= self._longest:
            self._parts.append(part)
        elif len(self._parts) > 1:
            self._parts = [b"".join(self._parts)[:_KEPT]]
        elif not self._parts:
            self._parts = [part[:_KEPT]]
