"""Cuts off what takes too long, where the call itself knows no time limit.

A write to a program that reads no more, or the answer of an sshd that hangs, is waited for without
end. What is cut off meanwhile comes to an end, with an error or as if its connection was lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def cut_off(cut: Callable[[], object], after_s: float) -> Iterator[threading.Event]:
    """Call `cut` if the block is not over after so many seconds; the event tells that it was."""
    late = threading.Event()

    def strike() -> None:
        late.set()
        with suppress(Exception):  # its connection may be gone already
            cut()

    watch = threading.Timer(after_s, strike)
    watch.daemon = True
    watch.start()
    try:
        yield late
    finally:
        watch.cancel()
