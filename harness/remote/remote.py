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
    """A command that could not be run, or that failed: node, command, what it said."""


class Sink(Protocol):
    """A program's standard input. OSError where the program, or the way to it, is gone."""

    def write(self, data: bytes, /) -> int | None:
        """Bytes taken, which may be fewer than given."""

    def close(self) -> None: ...


class Source(Protocol):
    """What a program writes."""

    def read(self, size: int = -1, /) -> bytes:
        """Wait for something, and give what is there, at most `size` bytes; all that comes until
        the end where no size is given. Empty at the end, also where the connection was lost."""

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
        """Its exit code. subprocess.TimeoutExpired where it runs for longer than that (s)."""

    def kill(self) -> None:
        """Cut it off: its standard input ends, and nothing that it writes is heard any more."""


class Remote(Protocol):
    """One node. Calls may come from several threads; each waits for the one before.

    A connection that was lost is opened again by the next call. A call during which it was lost
    is asked once more where asking twice changes nothing (put, get, state, and signals 0, STOP
    and CONT); any other raises RemoteError, because nobody knows whether it was carried out.
    """

    node: str

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        """Run a command to its end. RemoteError where it fails (with `check`) or hangs."""

    def put(self, path: str, content: bytes) -> None:
        """Write a file, in one step: a reader sees the old content or the new."""

    def get(self, path: str) -> bytes:
        """A file's content. RemoteError where there is none."""

    def signal(self, pid: int, number: int) -> bool:
        """Send a signal; False where there is no such process."""

    def state(self, pid: int) -> str | None:
        """The process' state letter from /proc (T is stopped), None where it is gone."""

    def spawn(self, argv: Sequence[str]) -> Program:
        """Start a program with its standard input and output connected here."""

    def close(self) -> None: ...
