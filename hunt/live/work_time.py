"""The processor time of another process, by its clock: one system call, in nanoseconds.

The kernel counts the time of a thread when it stops running, and at each tick meanwhile. So as long
as the sum stays the same, no thread of the process has run and gone to sleep again.
"""

from __future__ import annotations

import sys
import time

_SCHED = 2
"""CPUCLOCK_SCHED (linux/posix-timers_types.h): the time that the scheduler gave all threads."""


class WorkTime:
    """The processor time of a process."""

    def __init__(self, pid: int) -> None:
        # clock_getcpuclockid(3) returns this, after a look at the process.
        self._clock = (~pid << 3) | _SCHED if sys.platform.startswith("linux") else None

    def ns(self) -> int | None:
        """Return it, in ns; None if the process has ended, or where it cannot be seen."""
        try:
            return None if self._clock is None else time.clock_gettime_ns(self._clock)
        except OSError:
            return None
