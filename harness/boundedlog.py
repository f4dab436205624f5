"""Writes a log that never grows beyond a limit: it keeps its oldest and its newest lines."""

from __future__ import annotations

from pathlib import Path

from fencepost.atomic_write import replace

LIMIT = 8 << 20
"""Maximum size of a log in bytes."""


class BoundedLog:
    """Appends to a file. When the file is full, keeps a quarter of the limit from each end."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self._path = path
        self._keep = limit // 4
        self._limit = limit
        self._file = path.open("ab", buffering=0)
        self._head = b""
        self._left_out = 0

    def write(self, text: str) -> None:
        """Append lines. Raises OSError if the disk is full."""
        self._file.write(text.encode())
        if self._file.tell() > self._limit:
            self._shorten()

    def close(self) -> None:
        self._file.close()

    def _shorten(self) -> None:
        content = self._path.read_bytes()
        if not self._head:
            self._head = content[: content.rfind(b"\n", 0, self._keep) + 1]
            middle = content[len(self._head) :]
        else:
            # The line after the head says how much was left out before.
            middle = content[content.index(b"\n", len(self._head)) + 1 :]
        tail = middle[middle.find(b"\n", len(middle) - self._keep) + 1 :]
        self._left_out += len(middle) - len(tail)
        replace(self._path, [self._head, gap(self._left_out).encode(), tail])
        self._file.close()
        self._file = self._path.open("ab", buffering=0)


def gap(count: int) -> str:
    """Return the line that marks where `count` bytes were left out."""
    return f"... {count} bytes were left out here, to keep this log short ...\n"
