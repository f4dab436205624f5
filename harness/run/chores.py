"""What has to be done now and then while a run goes on, beside it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_S = 60.0


@contextmanager
def now_and_then(*chores: Callable[[], None], every_s: float = EVERY_S) -> Iterator[None]:
    """Do these again and again within the block, in a thread. An error ends that, not the run."""
    over = threading.Event()

    def loop() -> None:
        while not over.wait(every_s):
            for chore in chores:
                chore()

    thread = threading.Thread(target=loop, name="chores", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def give_back() -> None:
    """Give the system the memory that nobody holds any more.

    The allocator has a heap for each thread, of which a run has many: in twenty minutes it kept
    12 MB of what had been freed. glibc has a call for that; where there is none, nothing is done.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
