"""A client's program by its three streams: lines are sent to it, and all that it writes is read.

Two threads read until it ends. One hands over lines. The other keeps the end of what it writes to
its standard error, and reads all the time: a library that logs much would block at a full pipe.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from fencepost.harness.lines import Lines, TooLong
from fencepost.harness.remote.remote import Program, RemoteError

# How long a client may take to close its sessions and connections before it is killed.
_END_S = 2.0
_KEPT = 3000


class Streams:
    """`said` is what the program wrote to its standard error last."""

    def __init__(self, program: Program, node: str) -> None:
        self.said = ""
        self._program = program
        self._node = node
        self._reader: threading.Thread | None = None

    def read(
        self, take: Callable[[Sequence[bytes | TooLong]], None], ended: Callable[[], None]
    ) -> None:
        """Hand lines to `take`, in a thread; then call `ended`, once all was read and `said`."""
        listener = threading.Thread(target=self._listen, name=f"hear {self._node}", daemon=True)
        listener.start()

        def read() -> None:
            self._lines(take)
            listener.join(2.0)
            with suppress(OSError):
                ended()

        self._reader = threading.Thread(target=read, name=f"read {self._node}", daemon=True)
        self._reader.start()

    def _lines(self, take: Callable[[Sequence[bytes | TooLong]], None]) -> None:
        assert self._program.stdout
        lines = Lines()
        while chunk := self._program.stdout.read(1 << 16):
            take(lines.take(chunk))
        if rest := lines.rest():
            take([rest])

    def _listen(self) -> None:
        assert self._program.stderr
        said = b""
        while chunk := self._program.stderr.read(1 << 16):
            said = (said + chunk)[-_KEPT:]
            self.said = said.decode(errors="replace").strip()

    def send(self, message: dict[str, Any]) -> None:
        assert self._program.stdin
        # One that is gone takes nothing, and `ended` tells whoever waits.
        with suppress(OSError):
            self._program.stdin.write(msgspec.json.encode(message) + b"\n")

    def wait_over(self, timeout_s: float) -> None:
        """Until all was read."""
        if self._reader is not None:
            self._reader.join(timeout_s)

    def close(self, kill: Callable[[], None] | None) -> None:
        """Close its standard input; `kill` it on its node if it does not end by that.

        The program itself, so that its pump hands over what it had still to say; cut off, if that
        does not help either.
        """
        assert self._program.stdin
        self._program.stdin.close()
        ended = False
        try:
            ended = self._ends()
            if not ended and kill is not None:
                with suppress(RemoteError):
                    kill()
                    ended = self._ends()
        finally:
            if not ended:
                self._program.kill()
                self._program.wait()
        self.wait_over(2.0)

    def _ends(self) -> bool:
        try:
            self._program.wait(_END_S)
        except subprocess.TimeoutExpired:
            return False
        return True
