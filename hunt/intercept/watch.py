"""Ends code that runs for seconds without a step, because virtual time cannot end it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_LONGEST_S = 20.0
"""Longest real time of a run; one usually takes milliseconds."""
_AGAIN_S = 1.0
"""Interval of further attempts: the running code may catch the exception."""


@contextmanager
def watched(stuck: Callable[[str], BaseException]) -> Iterator[None]:
    """Raise the exception that `stuck` makes from the running line, after far too long a time.

    Without such signals (on Windows, or outside the main thread) it watches nothing.
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
