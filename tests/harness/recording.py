"""A recorder without a client: lines handed to it as a worker does it, and a disk that is full."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from fencepost.harness.clients.event import decode
from fencepost.harness.clients.recorder import Recorder


def record(recorder: Recorder, lines: Sequence[bytes]) -> None:
    recorder.append(lines, [decode(line) for line in lines])


class Full:
    """A file on a disk that has room for so many bytes more."""

    def __init__(self, file, room):
        self._file, self._room = file, room
        self.closed = False

    def write(self, data):
        if not self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._file.write(data[: self._room])
        self._room -= written
        return written

    def free(self, room):
        self._room = room

    def fileno(self):
        return self._file.fileno()

    def close(self):
        self._file.close()
