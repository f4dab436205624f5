"""Ends code that runs on and on without a step, which no simulated clock can end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_LONGEST_S = 20.0
"""A run takes some milliseconds."""
_AGAIN_S = 1.0
"""What is raised may be caught by whatever runs just then."""


@contextmanager
def watched(stuck: Callable[[str], BaseException]) -> Iterator[None]:
    """Raise what `stuck` makes of the line that runs, once this has taken far too long.

    Where there are no such signals (Windows, other threads than the first) nothing is watched.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        where = "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
        raise stuck(where)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_S, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
