"""A client's program by its three streams: it sends lines to the program, and reads all its output.

Two threads read until it ends. One passes lines on. The other keeps the end of the program's
standard error, and reads it all the time: a library that logs much would block at a full pipe.
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

# Time limit for a client to close its sessions and connections before it is killed.
_END_S = 2.0
_KEPT = 3000


class Streams:
    """`said` is the latest output of the program on its standard error."""

    def __init__(self, program: Program, node: str) -> None:
        self.said = ""
        self._program = program
        self._node = node
        self._reader: threading.Thread | None = None

    def read(
        self,
        take: Callable[[Sequence[bytes | TooLong]], None],
        ended: Callable[[Exception | None], None],
    ) -> None:
        """Pass lines to `take`, in a thread; then call `ended`, after the last line and `said`.
        If `take` raises an error, pass that to `ended`, and no further lines to `take`."""
        listener = threading.Thread(target=self._listen, name=f"hear {self._node}", daemon=True)
        listener.start()

        def read() -> None:
            defect = None
            try:
                self._lines(take)
            except Exception as error:
                defect = error
                raise
            finally:
                if defect is None:  # otherwise its program still runs
                    listener.join(2.0)
                with suppress(OSError):
                    ended(defect)

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
        # A program that has ended takes nothing, and `ended` notifies the waiter.
        with suppress(OSError):
            self._program.stdin.write(msgspec.json.encode(message) + b"\n")

    def wait_over(self, timeout_s: float) -> None:
        """Wait until all output was read."""
        if self._reader is not None:
            self._reader.join(timeout_s)

    def close(self, kill: Callable[[], None]) -> None:
        """Close its standard input; `kill` it on its node if it does not end by that.

        Kill the program itself, so that its pump delivers the remaining output; disconnect if that
        does not help either.
        """
        assert self._program.stdin
        self._program.stdin.close()
        ended = False
        try:
            ended = self._ends()
            if not ended:
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
