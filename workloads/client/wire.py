"""The lines of the protocol (docs/protocol.md): a client's input and output.

An invocation is written before its op begins, so that a killed process has recorded it. A
completion is written with the next output, in the same write, or before the client waits. A process
killed in those microseconds leaves an op that may have happened, which is true.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from fencepost.workloads.contract.lock import Failed


class Own(msgspec.Struct, frozen=True):
    """A user lock, which is in no registry: FILE:NAME, in a folder of this node."""

    folder: str
    lock: str


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of this client. `stride` is added to `process` when a process is gone.

    `addresses` gives each server's [host, port]; `origin_ns` is the test's start on
    CLOCK_MONOTONIC, which all processes of one kernel share and no wall clock affects.
    `write_script` is the Lua script by which a client in another language writes to a Redis store.
    `steps`: each step of an op (steps.py) is a failpoint. `stops`: what ends the work of a leader,
    if the lock is an elector (workloads/electors/plain.py). `closes`: after a cancelled call the
    client closes its lock and makes a new one, in any case.
    """

    process: int
    stride: int
    node: str
    lock: str
    options: dict[str, Any]
    servers: list[str]
    addresses: dict[str, tuple[str, int]]
    storage: str
    store: str = "redis"
    guard: str
    write_script: str = ""
    seed: str
    origin_ns: int
    own: Own | None = None
    steps: bool = False
    stops: str | None = None
    closes: bool = False


def written(setup: Setup) -> dict[str, Any]:
    """Return the setup as in the protocol: without the fields that are not set."""
    rows: dict[str, Any] = msgspec.to_builtins(setup)
    return {name: value for name, value in rows.items() if value is not None and value is not False}


class NoMoreOrders(Exception):
    """Standard input has ended: the harness is gone, or does not need this client any more."""


class Inbox:
    """Lines of a file descriptor, read with or without waiting. `heard` was read before."""

    def __init__(self, fd: int, heard: bytes = b"") -> None:
        self._fd = fd
        *self._lines, self._rest = heard.split(b"\n")
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN | select.POLLHUP)

    def take(self, timeout_s: float | None) -> dict[str, Any] | None:
        """Return the next line, or None if none comes in time. Without a timeout it waits.

        Raises NoMoreOrders at the end.
        """
        while not self._lines:
            if not self._poll.poll(None if timeout_s is None else timeout_s * 1000):
                return None
            if not self._read():
                raise NoMoreOrders
        message: dict[str, Any] = msgspec.json.decode(self._lines.pop(0))
        return message

    def sift(self, carried_out: Callable[[dict[str, Any]], bool]) -> None:
        """Pass the waiting lines to a filter; lines that it does not carry out stay, in order."""
        while self._poll.poll(0) and self._read():
            pass
        self._lines = [line for line in self._lines if not carried_out(msgspec.json.decode(line))]

    @property
    def heard(self) -> bytes:
        """Return the input that was read, and not taken."""
        return b"\n".join([*self._lines, self._rest])

    def _read(self) -> bool:
        """Read the available input, or wait for it; False at the end."""
        chunk = os.read(self._fd, 65536)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._lines.extend(lines)
        return bool(chunk)


class Said(Protocol):
    """The sink of a client's events: an Outbox, or its replacement in a simulation.

    `process` is the number that events carry. A lock's own threads report the state of a hold while
    the client is in an op; holding `speaking` keeps a report uninterrupted.
    """

    process: int

    @property
    def speaking(self) -> AbstractContextManager[Any]: ...

    def now(self) -> int:
        """Return the time since the test's start, in ns."""

    def event(self, type: str, f: str, value: dict[str, Any], error: Failed | None = None) -> None:
        """Stamp an event; it is written with the next `flush`."""

    def flush(self) -> None:
        """Write the events that were not written yet."""


class Outbox:
    """Writes events of the history (`Said`), and answers to orders, to a file descriptor.

    `events`: how many there were.
    """

    def __init__(self, fd: int, setup: Setup) -> None:
        self.process = setup.process
        self.speaking = threading.RLock()
        self.fd = fd
        self._node = setup.node
        self._origin_ns = setup.origin_ns
        self._encode = msgspec.json.Encoder().encode
        self._unsaid = b""
        self.events = 0

    def now(self) -> int:
        """Return the time since the test's start, in ns."""
        return time.monotonic_ns() - self._origin_ns

    def event(self, type: str, f: str, value: dict[str, Any], error: Failed | None = None) -> None:
        """Stamp an event; it is written with the next `flush`."""
        with self.speaking:
            event: dict[str, Any] = {
                "time": self.now(),
                "process": self.process,
                "type": type,
                "f": f,
                "value": value,
                "node": self._node,
            }
            if error is not None:
                event["error"] = [error.kind, error.text]
            self.events += 1
            self._unsaid += self._encode(event) + b"\n"

    def answer(self, control: str, **fields: Any) -> None:
        """Write an answer, after the events that were not written yet."""
        with self.speaking:
            self._unsaid += self._encode({"control": control, **fields}) + b"\n"
            self.flush()

    def flush(self) -> None:
        """Write the events that were not written yet."""
        with self.speaking:
            lines, self._unsaid = self._unsaid, b""
            while lines:
                lines = lines[os.write(self.fd, lines) :]
