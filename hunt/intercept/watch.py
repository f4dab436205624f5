"""Ends code that runs for seconds without a step, because virtual time cannot end it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_LONGEST_S = 20.0
"""Longest real time of a run from its first look, without the time in which it waited for a
processor; one usually takes milliseconds, though the first one loads modules."""
_STEP_S = 3.0
"""Longest processor time between two steps. A busy machine does not use it up."""
_LOOK_S = 0.5
"""Interval of looks. After the first attempt to end the code there are more: it may catch the
exception."""

# Simulated code finds other clocks in `time`.
_monotonic, _processor = time.monotonic, time.process_time
_open, _read, _close = os.open, os.read, os.close
_QUEUED = "/proc/thread-self/schedstat"
"""In proc(5): the ns that this thread ran, and the ns that it waited for a processor."""


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
    seen, since_s = -1, 0.0
    begun_s: float | None = None

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal seen, since_s, begun_s
        real_s = _monotonic() - _queued_s()
        if begun_s is None:
            # Almost every run ends before the first look. A busy machine delays this look, and how
            # long the thread waited for a processor until then is unknown.
            begun_s = real_s
        if seen != steps():
            seen, since_s = steps(), _processor()
        if _processor() - since_s >= _STEP_S or real_s - begun_s >= _LONGEST_S:
            raise stuck(frame)

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_S, _LOOK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _queued_s() -> float:
    """Return how long this thread has waited for a processor; 0 where no kernel counts it."""
    try:
        file = _open(_QUEUED, os.O_RDONLY)
    except OSError:
        return 0.0
    try:
        return int(_read(file, 100).split()[1]) / 1e9
    finally:
        _close(file)
