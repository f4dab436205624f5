"""Ends the clients' process groups if the hunt's process is killed.

A small process of its own reads the groups from a pipe, and kills them when the pipe closes. So
neither SIGKILL nor a client that is stopped at that moment leaves anything behind.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

_WATCH = """
import os, sys
groups = set()
for line in sys.stdin:
    word, group = line.split()
    (groups.add if word == "add" else groups.discard)(int(group))
for group in groups:
    try:
        os.killpg(group, 9)
    except OSError:
        pass
"""


class Guard:
    """Watches the process groups of the clients. It holds these file descriptors as well, until
    none of them lives."""

    def __init__(self, held: Sequence[int] = ()) -> None:
        # A session of its own: Ctrl-C at the terminal does not end it before the clients.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCH],
            stdin=subprocess.PIPE,
            start_new_session=True,
            pass_fds=held,
            bufsize=0,
        )

    def add(self, group: int) -> None:
        self._say(f"add {group}\n")

    def drop(self, group: int) -> None:
        self._say(f"drop {group}\n")

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(line.encode())

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
