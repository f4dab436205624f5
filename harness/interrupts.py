"""Signals that end a command: the first interrupts it, later ones do not disturb its cleanup.

Python raises KeyboardInterrupt for SIGINT only. A run that gets SIGTERM, or SIGHUP because its
terminal was closed, has the same nodes to remove.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt_on_signals() -> None:
    """Raise KeyboardInterrupt for SIGTERM and SIGHUP too, unless they are ignored (nohup)."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore further signals while the cleanup goes on."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread, and only it may set their handlers
        return
    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _wait)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):  # its terminal may be gone
        print("fencepost: cleaning up, this takes a few seconds", flush=True)
