"""The file of a simulated socket (socket.makefile)."""

from __future__ import annotations

import io
from typing import Any


class SocketFile(io.RawIOBase):
    """Reads and writes a socket as a file."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return int(self._of.recv_into(buffer))

    def write(self, data: Any) -> int:
        return int(self._of.send(bytes(data)))
