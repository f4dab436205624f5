"""Periodic tasks during a run, in a separate thread."""

from __future__ import annotations

import ctypes
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_S = 60.0


@contextmanager
def now_and_then(*chores: Callable[[], None], every_s: float = EVERY_S) -> Iterator[None]:
    """Repeat these tasks within the block, in a thread. An error of one ends neither the run nor
    the thread, because logs would grow without bound; its first one is shown."""
    over = threading.Event()
    failed: set[Callable[[], None]] = set()

    def repeat(chore: Callable[[], None]) -> None:
        try:
            chore()
        except Exception:  # tasks are anyone's, and the thread must outlive them
            if chore not in failed:
                traceback.print_exc()
            failed.add(chore)

    def loop() -> None:
        while not over.wait(every_s):
            for chore in chores:
                repeat(chore)

    thread = threading.Thread(target=loop, name="chores", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def give_back() -> None:
    """Return unused memory to the system."""
    _glibc("malloc_trim", 0)


def share_heaps() -> None:
    """Let all threads share two heaps of the allocator, from now on.

    By default each thread gets its own heap, up to eight per processor, and each heap keeps some MB
    of freed memory. In twenty minutes a run grew by 12 MB, while the count of Python's blocks
    hardly changed. Threads of Python seldom allocate at the same time.
    """
    _glibc("mallopt", _ARENA_MAX, 2)


# M_ARENA_MAX, of malloc.h.
_ARENA_MAX = -8


def _glibc(name: str, *arguments: int) -> None:
    """Call a function of glibc; do nothing without glibc."""
    call = getattr(ctypes.CDLL(None), name, None)
    if call is not None:
        call(*arguments)
