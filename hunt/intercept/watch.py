"""Ends code that runs for seconds without a step, because virtual time cannot end it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_LONGEST_S = 20.0
"""Longest real time of a run; one usually takes milliseconds."""
_STEP_S = 3.0
"""Longest processor time between two steps. A busy machine does not use it up."""
_LOOK_S = 0.5
"""Interval of looks. After the first attempt to end the code there are more: it may catch the
exception."""

# Simulated code finds other clocks in `time`.
_monotonic, _processor = time.monotonic, time.process_time


@contextmanager
def watched(
    steps: Callable[[], int], stuck: Callable[[FrameType | None], BaseException]
) -> Iterator[None]:
    """Raise the exception that `stuck` makes from the running frame, after far too long a time.

    `steps`: the number of steps so far. Without such signals (on Windows, or outside the main
    thread) it watches nothing.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    begun_s, seen, since_s = _monotonic(), -1, 0.0

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal seen, since_s
        if seen != steps():
            seen, since_s = steps(), _processor()
        if _processor() - since_s >= _STEP_S or _monotonic() - begun_s >= _LONGEST_S:
            raise stuck(frame)

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_S, _LOOK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
