"""A file's content beyond the disk: its writes and truncates since its last sync.

They are kept in memory, in pages, over an object: the file of the backing directory that is "the
disk".
"""

from __future__ import annotations

import os

PAGE = 4096
_ZEROS = bytes(PAGE)


class Content:
    """A regular file's bytes. Raises OSError, as the object's own file system does.

    `unsynced` counts the bytes of writes since the last sync, each write by itself.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = None
        self._pages: dict[int, bytearray] = {}
        self._stored = os.stat(path).st_size if os.path.exists(path) else 0
        # From here on the object's bytes no longer count, because it was truncated.
        self._floor = self._stored
        self.size = self._stored
        self.unsynced = 0

    @property
    def dirty(self) -> bool:
        return bool(self._pages) or not self.size == self._stored == self._floor

    @property
    def reserved(self) -> int:
        """Return the bytes of memory that a sync may turn into bytes of the disk."""
        return len(self._pages) * PAGE

    def fresh(self, offset: int, length: int) -> int:
        """Return by how many bytes such a write increases `reserved`."""
        span = range(offset // PAGE, (offset + length - 1) // PAGE + 1) if length else range(0)
        return sum(PAGE for page in span if page not in self._pages)

    def read(self, offset: int, length: int) -> bytes:
        length = max(0, min(length, self.size - offset))
        if not self._pages:
            return self._below(offset, length)
        parts = []
        end = offset + length
        while offset < end:
            page, start = divmod(offset, PAGE)
            take = min(PAGE - start, end - offset)
            held = self._pages.get(page)
            parts.append(self._below(offset, take) if held is None else held[start : start + take])
            offset += take
        return b"".join(parts)

    def write(self, offset: int, data: bytes) -> int:
        view = memoryview(data)
        at = offset
        while view:
            page, start = divmod(at, PAGE)
            take = min(PAGE - start, len(view))
            held = self._pages.get(page)
            if held is None:
                whole = take == PAGE
                held = bytearray(_ZEROS if whole else self._below(page * PAGE, PAGE))
                self._pages[page] = held
            held[start : start + take] = view[:take]
            view = view[take:]
            at += take
        self.size = max(self.size, at)
        self.unsynced += len(data)
        return len(data)

    def truncate(self, size: int) -> None:
        if size < self.size:
            last, kept = divmod(size, PAGE)
            for page in [page for page in self._pages if page >= last]:
                if page > last or not kept:
                    del self._pages[page]
                else:
                    self._pages[page][kept:] = _ZEROS[kept:]
            self._floor = min(self._floor, size)
        self.size = size

    def sync(self) -> None:
        """Write everything down. If that fails (no space), all of it stays unsynced."""
        if not self.dirty:
            return
        fd = self._open()
        if self._floor < self._stored:
            os.ftruncate(fd, self._floor)
            self._stored = self._floor
        for page, held in sorted(self._pages.items()):
            at = page * PAGE
            os.pwrite(fd, held[: self.size - at] if at + PAGE > self.size else held, at)
        os.ftruncate(fd, self.size)
        self._pages = {}
        self._stored = self._floor = self.size
        self.unsynced = 0

    def lose(self) -> None:
        """Drop all but the disk's bytes."""
        self._pages = {}
        self.size = self._floor = self._stored
        self.unsynced = 0

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def remove(self) -> None:
        """Free the object's space."""
        self.close()
        if os.path.exists(self._path):
            os.unlink(self._path)

    def _below(self, offset: int, length: int) -> bytes:
        """Read from the object, padded with zeros."""
        there = max(0, min(length, self._floor - offset))
        found = os.pread(self._open(), there, offset) if there else b""
        return found + bytes(length - len(found))

    def _open(self) -> int:
        if self._fd is None:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        return self._fd
