"""A bounded file in memory for a program's unread output.

The reader may be slow, or gone for a while. Waiting output is kept up to a limit. Beyond it the
middle is dropped: the oldest and the newest lines stay, and a line in between gives the amount
dropped.
"""

from __future__ import annotations

import ctypes
import fcntl
import os

LIMIT = 64 << 20
"""Largest amount of waiting output in bytes."""
_CHUNK = 1 << 20
# FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE, of linux/falloc.h.
_PUNCH_HOLE = 1 | 2


class Spool:
    """The spool. `fd` is the program's output. Everything here uses explicit positions in the file,
    because the program's writes use the position that the descriptor shares."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.fd = os.memfd_create("fencepost-spool")
        fcntl.fcntl(self.fd, fcntl.F_SETFL, os.O_APPEND)
        self._limit = limit
        self._chunk = min(_CHUNK, limit // 4)
        self._place = 0
        self._cut: tuple[int, int] | None = None
        self._within_a_line = False
        self._length = 0
        self._allocate = ctypes.CDLL(None).fallocate
        self._allocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)

    def read(self) -> bytes:
        """Return the next chunk, empty if nothing waits. Call `done` once it was handed on."""
        self._length = 0
        if self._cut and self._place == self._cut[0]:
            start, self._place = self._cut
            self._cut = None
            return self._missing(start, self._place)
        most = min(self._chunk, self._cut[0] - self._place) if self._cut else self._chunk
        chunk = os.pread(self.fd, most, self._place)
        self._length = len(chunk)
        return chunk

    def done(self) -> None:
        """Free the memory of the last chunk."""
        self._place += self._length
        self._free(0, self._place)

    def trim(self) -> None:
        """Drop the middle of the waiting output if it exceeds the limit."""
        size = os.fstat(self.fd).st_size
        start, end = self._cut or (0, 0)
        if size - self._place - (end - start) <= self._limit:
            return
        if not self._cut:
            # Keep the chunk being handed on.
            start = end = self._line_from(self._place + self._limit // 2)
            self._within_a_line = os.pread(self.fd, 1, start - 1) != b"\n"
        self._cut = (start, max(end, self._line_from(size - self._limit // 4)))
        self._free(end, self._cut[1])

    def _missing(self, start: int, end: int) -> bytes:
        line_end = b"\n" if self._within_a_line else b""
        return b'%s{"control":"cut","bytes":%d}\n' % (line_end, end - start)

    def _line_from(self, place: int) -> int:
        """Return where the next line begins; the position itself if none does for long."""
        found = os.pread(self.fd, self._chunk, place).find(b"\n")
        return place if found < 0 else place + found + 1

    def _free(self, start: int, end: int) -> None:
        self._allocate(self.fd, _PUNCH_HOLE, start, end - start)
