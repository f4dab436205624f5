"""Time and memory limits of a check, cheap to test often."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Exhausted(Exception):
    """A limit was reached. The verdict is unknown; `reason` names the limit and how far the check
    got."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Budget:
    """Limits: `deadline` in s of time.monotonic, `ceiling` in bytes of resident memory; None: no
    limit."""

    deadline: float | None = None
    ceiling: int | None = None
    time_limit: float | None = None
    memory_limit: float | None = None

    @classmethod
    def starting_now(
        cls, time_limit: float | None = None, memory_limit: float | None = None
    ) -> Budget:
        """Start limits in s and in MB. Memory counts from now on, as growth of the process."""
        return cls(
            None if time_limit is None else time.monotonic() + time_limit,
            None if memory_limit is None else resident() + int(memory_limit * 1_000_000),
            time_limit,
            memory_limit,
        )

    def spend(self, where: str) -> None:
        """Raise Exhausted if a limit is reached; `where` describes the current step."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise Exhausted(f"time limit of {self.time_limit:g} s reached {where}")
        if self.ceiling is not None and resident() > self.ceiling:
            raise Exhausted(f"memory limit of {self.memory_limit:g} MB reached {where}")

    def left(self) -> float | None:
        """Return the seconds to the deadline, or None without one."""
        return None if self.deadline is None else self.deadline - time.monotonic()

    def growing(self, megabytes: float) -> Budget:
        """Return the same limits, but no more than `megabytes` more memory than now."""
        ceiling = resident() + int(megabytes * 1_000_000)
        if self.ceiling is not None and self.ceiling < ceiling:
            return self
        return Budget(self.deadline, ceiling, self.time_limit, megabytes)


UNLIMITED = Budget()


def resident() -> int:
    """Return the resident memory of this process in bytes, or its peak if only that is known. 0 if
    neither is known (Windows), so that no memory limit is ever reached there."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except OSError:
        if resource is None:
            return 0
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
