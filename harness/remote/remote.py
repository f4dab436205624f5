"""Defines the boundary to a node: run a command, put and get a file, signal a process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Result:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


class RemoteError(RuntimeError):
    """A command could not run, or failed; the text has the node, the command and its output."""


class NoAnswer(RemoteError):
    """The node could not be reached or did not answer, so its state is unknown."""


class Sink(Protocol):
    """A program's standard input. Raises OSError if the program or its connection is gone."""

    def write(self, data: bytes, /) -> int | None:
        """Return the number of bytes written, which may be less than len(data)."""

    def close(self) -> None: ...


class Source(Protocol):
    """A program's standard output or error."""

    def read(self, size: int = -1, /) -> bytes:
        """Wait for data and return at most `size` bytes; without a size, all until the end.

        Return b"" at the end, or if the connection was lost.
        """

    def close(self) -> None: ...


class Program(Protocol):
    """A program on a node, with its standard streams as pipes. `subprocess.Popen` is one."""

    @property
    def stdin(self) -> Sink | None: ...
    @property
    def stdout(self) -> Source | None: ...
    @property
    def stderr(self) -> Source | None: ...

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raise subprocess.TimeoutExpired after `timeout` seconds."""

    def kill(self) -> None:
        """Close its standard input, and read nothing more from it."""


class Remote(Protocol):
    """One node. Several threads may call it; calls run one at a time.

    After the connection is lost, the next call opens it again. A call that was interrupted by the
    loss is retried if it is idempotent (put, get, state, and signals 0, STOP and CONT). Any other
    call raises RemoteError, because it is unknown whether it took effect.
    """

    node: str

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        """Run a command to its end. Raise RemoteError if it fails (with `check`) or hangs."""

    def put(self, path: str, content: bytes) -> None:
        """Write a file atomically: a reader sees either the old content or the new."""

    def get(self, path: str) -> bytes:
        """Return the content of a file. Raise RemoteError if it does not exist."""

    def signal(self, pid: int, number: int, started: str | None = None) -> bool:
        """Send a signal; return False if there is no such process.

        With `started` (node/processes.py), a new process that reuses the pid gets no signal.
        Without it, the process with this pid gets the signal, whichever it is.
        """

    def state(self, pid: int, started: str | None = None) -> str | None:
        """Return the process' state letter from /proc (T is stopped); None if it has ended."""

    def spawn(self, argv: Sequence[str]) -> Program:
        """Start a program with its standard input and output as pipes."""

    def close(self) -> None: ...
