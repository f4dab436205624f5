"""Lines of a stream that comes in chunks, none of them longer than memory can bear."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 1 << 20
"""Bytes of a line at most. No event has a thousandth of it."""
_KEPT = 1 << 12


@dataclass(frozen=True)
class TooLong:
    """A line that was longer than LONGEST: how it begins, and how long it was."""

    start: bytes
    length: int


class Lines:
    """Each byte is looked at once, however many chunks a line comes in."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def take(self, chunk: bytes) -> list[bytes | TooLong]:
        """The lines that end in this chunk."""
        *ends, rest = chunk.split(b"\n")
        found = [self._ended(end) for end in ends]
        self._add(rest)
        return found

    def rest(self) -> bytes | TooLong:
        """What followed the last line's end."""
        return self._ended(b"")

    def _ended(self, end: bytes) -> bytes | TooLong:
        self._add(end)
        whole, length = b"".join(self._parts), self._length
        self._parts, self._length = [], 0
        return whole if length <= LONGEST else TooLong(whole[:_KEPT], length)

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= LONGEST:
            self._parts.append(part)
        elif len(self._parts) > 1:
            self._parts = [b"".join(self._parts)[:_KEPT]]
        elif not self._parts:
            self._parts = [part[:_KEPT]]
