"""Ends a client whose user lock computes for ever, and says where.

Without this, `check` and `test` would wait for the op until its time limit, and could not name the
line. A timer of processor time interrupts the client: one that waits for its servers uses none. A
lock that polls them without a sleep uses as much as a loop that never ends, but gives the processor
up at each request, and spends a part of the time in the kernel.
"""

from __future__ import annotations

import atexit
import resource
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from fencepost.workloads.client.wire import Own

_LOOK_S = 1.0
"""Interval of the timer, in seconds of processor time."""
_LOOKS = 4
"""This many intervals in a row without a wait are an endless loop."""
_WAITS = 250
"""The least number of waits per second of processor time of a client that waits. One that sends
requests without a pause waits some 700 times with `requests.post` (a connection each), and 1,200
times with a session. An endless loop waits at most 200 times, for threads that contend for the
interpreter (`sys.getswitchinterval`: 5 ms). On a busy machine a client waits less often, because
its answers are there before it asks for them: some 380 times at a load of 8."""
_SYSTEM = 0.08
"""The least share of a client's processor time within the kernel if it sends requests. It is 12 to
16 % with `requests.post`, and up to 5 % in a loop that looks at a clock."""


class Endless:
    """Looks at the main thread, and calls `told` with a sentence once it is in an endless loop: it
    computes and completes no op. `events` counts the events of its ops.

    Without such a timer (on Windows) it does nothing.
    """

    def __init__(
        self, own: Own, node: str, events: Callable[[], int], told: Callable[[str], Any]
    ) -> None:
        self._own, self._node, self._events, self._told = own, node, events, told
        self._seen = 0
        self._before = (0.0, 0.0, 0)
        self._looks = 0
        if hasattr(signal, "setitimer") and hasattr(resource, "RUSAGE_THREAD"):
            self._before = _used()
            signal.signal(signal.SIGVTALRM, self._look)
            signal.setitimer(signal.ITIMER_VIRTUAL, _LOOK_S, _LOOK_S)
            # Python restores the default action of signals before it ends: this one would kill it.
            atexit.register(signal.setitimer, signal.ITIMER_VIRTUAL, 0)

    def _look(self, number: int, frame: FrameType | None) -> None:
        now, before = _used(), self._before
        spent_s, system_s, waited = (one - other for one, other in zip(now, before, strict=True))
        self._before = now
        asks = waited >= spent_s * _WAITS or system_s >= spent_s * _SYSTEM
        # If other threads used the time, the main one may be waiting for them.
        busy = spent_s > _LOOK_S / 2 and not asks and self._seen == self._events()
        self._seen = self._events()
        self._looks = self._looks + 1 if busy else 0
        if self._looks == _LOOKS:
            self._told(
                f"{self._own.lock} does not terminate on {self._node}: it ran for "
                f"{_LOOK_S * _LOOKS:g} s without waiting{_where(frame, Path(self._own.folder))}. "
                "End its loop, or wait in it"
            )


def _used() -> tuple[float, float, int]:
    """Return the processor time of this thread in s, of which in the kernel, and how often it
    waited."""
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return used.ru_utime + used.ru_stime, used.ru_stime, used.ru_nvcsw


def _where(frame: FrameType | None, folder: Path) -> str:
    """Return the line of the user's files that is running, as part of a sentence."""
    for one, line in traceback.walk_stack(frame):
        file = Path(one.f_code.co_filename)
        if file.is_relative_to(folder):
            return f", at {file.relative_to(folder)}, line {line}"
    return ""
