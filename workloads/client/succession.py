"""Replaces the program of a client by that of its successor, as a supervisor restarts a process.

An elector has threads and connections that nothing but the end of its process ends. So the client
executes its own program again (exec). The kernel then ends all other threads and closes the
connections, while the pid, the standard files and the clocks stay. The harness and the nemesis see
one worker process with many numbers, as with any other client.

The successor inherits what belongs to the worker: its setup, unread input, armed failpoints, and
the order to work. Its first event completes the `close` of its predecessor, which has ended by
then.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, NoReturn

import msgspec

from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.client.wire import Inbox, Outbox, Setup

_INHERITED = "FENCEPOST_SUCCESSOR"


class Inherited(msgspec.Struct, frozen=True):
    """The state that a successor takes over. `working`: the order by which it works, if it
    does."""

    setup: Setup
    predecessor: int
    heard: bytes
    armed: list[str]
    working: dict[str, Any] | None


class Succession:
    """Starts the successor. `working` is kept up to date by the work."""

    def __init__(self, setup: Setup, inbox: Inbox, out: Outbox, failpoints: Failpoints) -> None:
        self._setup, self._inbox, self._out, self._failpoints = setup, inbox, out, failpoints
        self.working: dict[str, Any] | None = None

    def replace(self, process: int) -> NoReturn:
        """Execute the program again, as `process`."""
        heritage = Inherited(
            msgspec.structs.replace(self._setup, process=process),
            self._out.process,
            self._inbox.heard,
            self._failpoints.armed,
            self.working,
        )
        with tempfile.TemporaryFile() as file:
            file.write(msgspec.json.encode(heritage))
            file.flush()
            os.set_inheritable(file.fileno(), True)
            os.dup2(self._out.fd, 1)  # the program reserves it again
            environment = os.environ | {_INHERITED: str(file.fileno())}
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def inherited() -> Inherited | None:
    """Return what this program inherits; None if it has no predecessor."""
    fd = os.environ.pop(_INHERITED, None)
    if fd is None:
        return None
    with open(int(fd), "rb") as file:
        file.seek(0)
        return msgspec.json.decode(file.read(), type=Inherited)


def begin(heritage: Inherited, out: Outbox, failpoints: Failpoints) -> None:
    """Complete the predecessor's `close`, and take over its armed failpoints."""
    out.process = heritage.predecessor
    out.event("ok", "close", {})
    out.flush()
    out.process = heritage.setup.process
    for point in heritage.armed:
        failpoints.arm(point)
