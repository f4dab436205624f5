"""A log that never grows beyond a limit: its oldest and its newest lines stay."""

from __future__ import annotations

from pathlib import Path

from fencepost.atomic_write import replace

LIMIT = 8 << 20
"""Bytes of a log at most."""


class BoundedLog:
    """Appends to a file. When that is full, a quarter of its limit is kept of either end."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self._path = path
        self._keep = limit // 4
        self._limit = limit
        self._file = path.open("ab", buffering=0)
        self._head = b""
        self._left_out = 0

    def write(self, text: str) -> None:
        """Append lines. OSError if there is no room on the disk."""
        self._file.write(text.encode())
        if self._file.tell() > self._limit:
            self._shorten()

    def close(self) -> None:
        self._file.close()

    def _shorten(self) -> None:
        said = self._path.read_bytes()
        if not self._head:
            self._head = said[: said.rfind(b"\n", 0, self._keep) + 1]
            middle = said[len(self._head) :]
        else:
            # After the head comes the line that says what was left out before.
            middle = said[said.index(b"\n", len(self._head)) + 1 :]
        tail = middle[middle.find(b"\n", len(middle) - self._keep) + 1 :]
        self._left_out += len(middle) - len(tail)
        replace(self._path, [self._head, gap(self._left_out).encode(), tail])
        self._file.close()
        self._file = self._path.open("ab", buffering=0)


def gap(count: int) -> str:
    """The line that stands where so many bytes were left out."""
    return f"... {count} bytes were left out here, to keep this log short ...\n"
