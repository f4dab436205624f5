"""Ends a client whose user lock computes for ever, and says where.

Without this, `check` and `test` would wait for the op until its time limit, and could not name the
line. A timer of processor time interrupts the client: one that waits for its servers uses none. A
lock that polls them without a sleep uses as much as a loop that never ends, but gives the processor
up at each request, and spends a part of the time in the kernel. While other threads compute, a loop
gives it up too, at the end of each of its turns with the interpreter.
"""

from __future__ import annotations

import atexit
import resource
import signal
import threading
import time
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
_TURNS = 600
"""Added to `_WAITS` for each other thread that computes. With one of them, an endless loop waits
some 380 times for the interpreter, and a client with `requests.post` 1,100 times or more; with
three, 900 and 4,600. On a machine with a load of 40, a loop waits twice as often."""
_SHARE = 1 / 3
"""The least part of its fair share of the processor time that a thread in a loop has. One that has
less was waiting for the others."""
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
        self._before = (0.0, 0.0, 0, 0.0)
        self._looks = 0
        self._ran_s = 0.0
        if hasattr(signal, "setitimer") and hasattr(resource, "RUSAGE_THREAD"):
            self._before = _used()
            signal.signal(signal.SIGVTALRM, self._look)
            signal.setitimer(signal.ITIMER_VIRTUAL, _LOOK_S, _LOOK_S)
            # Python restores the default action of signals before it ends: this one would kill it.
            atexit.register(signal.setitimer, signal.ITIMER_VIRTUAL, 0)

    def _look(self, number: int, frame: FrameType | None) -> None:
        now = _used()
        spent_s, system_s, waited, all_s = (
            one - other for one, other in zip(now, self._before, strict=True)
        )
        threads = threading.active_count()
        waits_for_threads = spent_s * threads < all_s * _SHARE
        if spent_s < _LOOK_S / 2 and not waits_for_threads:
            return  # its own time is too short to judge: the other threads have used theirs
        self._before = now
        others = min(threads - 1, all_s / spent_s - 1) if spent_s else 0
        asks = waited >= spent_s * (_WAITS + others * _TURNS) or system_s >= spent_s * _SYSTEM
        busy = not waits_for_threads and not asks and self._seen == self._events()
        self._seen = self._events()
        self._looks = self._looks + 1 if busy else 0
        self._ran_s = self._ran_s + spent_s if busy else 0.0
        if self._looks == _LOOKS:
            self._told(
                f"{self._own.lock} does not terminate on {self._node}: it ran for "
                f"{self._ran_s:.1f} s without waiting{_where(frame, Path(self._own.folder))}. "
                "End its loop, or wait in it"
            )


def _used() -> tuple[float, float, int, float]:
    """Return the processor time of this thread in s, of which in the kernel, how often it waited,
    and the processor time of all threads."""
    used = resource.getrusage(resource.RUSAGE_THREAD)
    time_s = used.ru_utime + used.ru_stime
    return time_s, used.ru_stime, used.ru_nvcsw, time.process_time()


def _where(frame: FrameType | None, folder: Path) -> str:
    """Return the line of the user's files that is running, as part of a sentence."""
    for one, line in traceback.walk_stack(frame):
        file = Path(one.f_code.co_filename)
        if file.is_relative_to(folder):
            return f", at {file.relative_to(folder)}, line {line}"
    return ""
