"""Ends calls that take too long and have no timeout of their own.

A write to a program that has stopped reading, and a request to a hung sshd, block forever. When the
connection is cut from outside, such a call returns or fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def cut_off(cut: Callable[[], object], after_s: float) -> Iterator[threading.Event]:
    """Call `cut` if the block takes longer than `after_s` seconds; then the event is set."""
    late = threading.Event()

    def expire() -> None:
        late.set()
        with suppress(Exception):  # the connection may be gone already
            cut()

    watch = threading.Timer(after_s, expire)
    watch.daemon = True
    watch.start()
    try:
        yield late
    finally:
        watch.cancel()
