"""A recorder without a client: lines as a worker passes them, and a full disk."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from fencepost.harness.clients.event import decode
from fencepost.harness.clients.recorder import Recorder


def record(recorder: Recorder, lines: Sequence[bytes]) -> None:
    recorder.append(lines, [decode(line) for line in lines])


class Full:
    """A file on a disk with room for this number of bytes."""

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
