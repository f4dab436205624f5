"""Writes the history during the run.

A client's line is written as it came, with `index` added in front: at ten thousand ops a second
there is no time to encode each again. It was checked before (client_events.py). Every chunk is
written to the file before anything else uses it, so that a killed run leaves all that it received.
The file is locked (flock) while it is written, so that readers know that they must not replace it.
`finish` sorts the ops by time, as a history requires.

If the disk is full, the file ends with the last whole line, and nothing follows: a history with a
gap would pair the ops before it with those after it.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from fencepost.checker.history import history
from fencepost.harness.clients.current_holders import CurrentHolders
from fencepost.harness.clients.event import Event
from fencepost.harness.clients.rejected import RejectedLines
from fencepost.harness.locked import is_live, lock


class Recorder:
    """`origin_ns` is the test's start on CLOCK_MONOTONIC; before `start`, the time of creation.

    `counts`: ops by f and type; `grants`: by lock and client. `aside`: rejected client lines. Of
    `clients`, the one with number n has the processes n, n + clients and so on; without it each
    process is a client. A long run has many processes, so nothing is kept for each process.
    """

    def __init__(
        self, path: Path, locks: Sequence[str] = ("",), clients: int | None = None
    ) -> None:
        self.path = path
        self.origin_ns = time.monotonic_ns()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.grants: Counter[tuple[str, int]] = Counter()
        self._clients = clients
        self._last: dict[int, tuple[int, str]] = {}
        self.failure: OSError | None = None
        self.aside = RejectedLines(path.parent)
        self.holding = CurrentHolders(self._name)
        self._file = path.open("ab", buffering=0)
        lock(self._file)
        self._size = self._file.tell()
        self._lock = threading.Lock()
        self._index = 0
        self._only = locks[0] if len(locks) == 1 else None

    def start(self) -> None:
        """Set the test's start to now."""
        self.origin_ns = time.monotonic_ns()

    def now(self) -> int:
        """Return ns since the test's start."""
        return time.monotonic_ns() - self.origin_ns

    def append(self, lines: Sequence[bytes], events: Sequence[Event]) -> None:
        """Append a client's events, each with its line: a JSON object, without a line end.

        Raises:
            OSError: they could not be written, or the history is closed.
        """
        with self._lock:
            self._put(lines)
            self.counts.update([(event.f, event.type) for event in events])
            for event in events:
                if event.f == "acquire" and event.type == "ok":
                    self._granted(event)
                self.holding.heard(event)

    def _granted(self, event: Event) -> None:
        lock = self._only
        if lock is None:
            lock = (event.value and event.value.lock) or ""
        client = self._client(event.process)
        self.grants[lock, client] += 1
        self._last[client] = event.process, lock

    def _name(self, process: int) -> str:
        return f"client-{self._client(process) + 1}"

    def _client(self, process: int) -> int:
        return process % self._clients if self._clients else process

    def last_granted(self, process: int) -> str | None:
        """Return the lock that a process was granted last."""
        owner, lock = self._last.get(self._client(process), (None, None))
        return lock if owner == process else None

    def grants_of(self, lock: str) -> int:
        """Return the number of recorded grants of this lock."""
        with self._lock:
            return sum(count for (name, _), count in self.grants.items() if name == lock)

    def op(
        self,
        process: int | str,
        type: str,
        f: str,
        value: dict[str, Any],
        error: list[str] | None = None,
        node: str | None = None,
    ) -> None:
        """Append an op of the harness itself, with the present time."""
        row: dict[str, Any] = {"time": self.now(), "process": process, "type": type, "f": f}
        more = {"value": value, "error": error, "node": node}
        row |= {name: one for name, one in more.items() if one is not None}
        with self._lock:
            self._put([msgspec.json.encode(row)])
            self.counts[f, type] += 1

    def _put(self, lines: Sequence[bytes]) -> None:
        start = self._index
        self._write(
            b"".join(
                b'{"index":%d,%s\n' % (start + place, line[1:]) for place, line in enumerate(lines)
            )
        )
        self._index += len(lines)

    def _write(self, data: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        if self._file.closed:
            # From a client that could not be closed. The run has ended and loses nothing by it.
            raise OSError(errno.EBADF, "the history is closed", str(self.path))
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            # The writer may be a thread without a waiter, so the run checks for this at its end.
            self.failure = OSError(error.errno, error.strerror, str(self.path))
            self._cut(data[: len(data) - len(view)])
            raise self.failure from error
        self._size += len(data)

    def _cut(self, done: bytes) -> None:
        """Remove the torn line that a failed write has left, and count the lines before it."""
        self._index += done.count(b"\n")
        self._size += done.rfind(b"\n") + 1
        with suppress(OSError):  # then a reader drops the torn line
            os.ftruncate(self._file.fileno(), self._size)

    @property
    def written(self) -> int:
        """Return the number of ops in the file."""
        return self._index

    def close(self) -> None:
        """Close the history; a later write raises OSError."""
        with self._lock:
            self._file.close()
        self.aside.close()


def finish(path: Path) -> history.History:
    """Sort a history's file by time, even one that a killed run left.

    A file in use is sorted in memory only: if it were replaced, its recorder would continue to
    write to a file without a name.
    """
    live = is_live(path)
    found = history.read(path)
    if found.notes and not live:
        history.write(path, found.ops)
    return found
