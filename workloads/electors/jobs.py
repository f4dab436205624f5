"""Jobs that an elector's library sends in a loop of its own, as a scheduler does.

Such an elector has `drives_work = True`, and its `run` is given `work`. The library's thread calls
`work` where it sends a job. The client does it, as a read and a write of the resource under its
hold, and the call returns once these are answered. So a client's ops stay one after the other,
and the library never works at a time at which it would not have.
"""

from __future__ import annotations

import threading
from collections import deque


class Job:
    """A request to the client: the names of jobs to do, or the failpoint that the library has
    reached; and whether it has ended."""

    def __init__(self, names: tuple[str, ...], point: str) -> None:
        self.names, self.point = names, point
        self.ended = threading.Event()


class Jobs:
    """The jobs of one campaign, first in, first out. Any thread may send; one client takes them."""

    def __init__(self) -> None:
        self._waiting: deque[Job] = deque()
        self._arrived = threading.Event()
        self._closed = False

    def send(self, names: tuple[str, ...] = (), point: str = "") -> None:
        """Wait until the client has done jobs, or passed a failpoint. Once they are closed, it does
        neither."""
        if self._closed:
            return
        job = Job(names, point)
        self._waiting.append(job)
        self._arrived.set()
        if not self._closed:
            job.ended.wait()

    def take(self, timeout_s: float) -> Job | None:
        """Return the next job, or None if none arrives in time. The client ends each."""
        if not self._waiting:
            self._arrived.wait(timeout_s)
        self._arrived.clear()
        if self._closed:  # one may have arrived as they were closed
            self._waiting.clear()
        return self._waiting.popleft() if self._waiting else None

    def close(self) -> None:
        """End all jobs that wait, and those that come later, undone."""
        self._closed = True
        while self._waiting:
            self._waiting.popleft().ended.set()
