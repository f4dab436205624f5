"""The process of a client's program at present: its pid, and when it began.

Most programs have one from start to end. That of an elector which cannot execute itself again
("restarts" in its `ready`) ends, and its pump starts it again, with a new pid. Faults find the new
process here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fencepost.harness.remote.processes import CLIENT, own
from fencepost.harness.remote.remote import Remote
from fencepost.node.processes import Process

# A JVM starts in a second, on an overloaded machine in a hundred.
_SUCCESSOR_S = 60.0
_LOOK_S = 0.05


class PresentProcess:
    """`closing`: it has begun its close, so that it may end; `gone`: it has no successor.

    `changed` guards both, and `told`.
    """

    def __init__(
        self,
        remote: Remote,
        changed: threading.Condition,
        closing: Callable[[], bool],
        gone: Callable[[], bool],
    ) -> None:
        self._remote, self._changed = remote, changed
        self._closing, self._gone = closing, gone
        self._told = 0
        self._restarts = False
        self._last: Process | None = None

    def begin(self, pid: int, restarts: bool) -> bool:
        """Take the pid of `ready`; return whether it is a client's."""
        self._last = own(self._remote, pid, CLIENT) if pid > 0 else None
        self._told, self._restarts = pid, restarts
        return self._last is not None

    def succeed(self, pid: int) -> None:
        """Take the pid of a successor. `changed` must be held."""
        self._told = pid

    def latest(self) -> Process | None:
        """Return the latest process, which may have ended; None before `ready`."""
        if self._last is not None and self._told != self._last.pid:
            self._last = own(self._remote, self._told, CLIENT) or self._last
        return self._last

    def now(self) -> Process | None:
        """Return the present process, once it has begun; None before `ready`.

        A process that is stopped while it closes is still the present one.
        """
        end = time.monotonic() + _SUCCESSOR_S
        while (last := self.latest()) and self._restarts and time.monotonic() < end:
            with self._changed:
                if self._gone() or (self._told == last.pid and not self._closing()):
                    break
            if self._remote.state(last.pid, last.started) == "T":
                break
            with self._changed:
                self._changed.wait(_LOOK_S)
        return last
