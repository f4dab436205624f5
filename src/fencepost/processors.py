"""Counts the processors that this process may use."""

from __future__ import annotations

import os


def count() -> int:
    """Return the number of processors that this process may run on, at least 1.

    Smaller than the machine's under taskset or in a container with a set of processors. macOS and
    Windows have no such set that can be read; there it is the machine's number.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
