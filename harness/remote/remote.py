"""The boundary to a node: run a command, put and get a file, signal a process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Result:
    """What a command left: its exit code and its output."""

    code: int
    out: str
    err: str


class RemoteError(RuntimeError):
    """A command could not be run, or failed: the text has the node, the command, its output."""


class NoAnswer(RemoteError):
    """The node could not be reached, or did not answer: so nobody knows how things are there."""


class Sink(Protocol):
    """A program's standard input. OSError if the program, or the connection to it, is gone."""

    def write(self, data: bytes, /) -> int | None:
        """Return how many bytes were written, which may be fewer than given."""

    def close(self) -> None: ...


class Source(Protocol):
    """A program's standard output or error."""

    def read(self, size: int = -1, /) -> bytes:
        """Wait for data and return at most `size` bytes; without a size, all until the end.

        Empty at the end, or if the connection was lost.
        """

    def close(self) -> None: ...


class Program(Protocol):
    """A program on a node, with its standard streams connected here. `subprocess.Popen` is one."""

    @property
    def stdin(self) -> Sink | None: ...
    @property
    def stdout(self) -> Source | None: ...
    @property
    def stderr(self) -> Source | None: ...

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raise subprocess.TimeoutExpired after `timeout` seconds."""

    def kill(self) -> None:
        """Cut it off: close its standard input, and read nothing that it writes any more."""


class Remote(Protocol):
    """One node. Several threads may call it; each call waits for the one before.

    After the connection was lost, the next call opens it again. A call during which it was lost is
    repeated if that changes nothing (put, get, state, and signals 0, STOP and CONT). Any other call
    raises RemoteError, because it is not known whether it was carried out.
    """

    node: str

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        """Run a command to its end. Raise RemoteError if it fails (with `check`) or hangs."""

    def put(self, path: str, content: bytes) -> None:
        """Write a file atomically: a reader sees the old content or the new."""

    def get(self, path: str) -> bytes:
        """Return a file's content. Raise RemoteError if there is no such file."""

    def signal(self, pid: int, number: int, started: str | None = None) -> bool:
        """Send a signal; False if there is no such process.

        With `started` (node/processes.py), another process that has its number now gets
        none. Without it, whoever has the number gets it.
        """

    def state(self, pid: int, started: str | None = None) -> str | None:
        """The process' state letter from /proc (T is stopped); None if it is gone."""

    def spawn(self, argv: Sequence[str]) -> Program:
        """Start a program with its standard input and output connected here."""

    def close(self) -> None: ...
