"""Handles the signals that end a command: the first interrupts it, later ones spare its cleanup.

Python raises KeyboardInterrupt for SIGINT only. A run that gets SIGTERM or SIGQUIT, or SIGHUP
because its terminal was closed, has the same faults to heal and the same nodes to remove.

Work that needs a cleanup runs in `undisturbed`; the part that a signal may interrupt runs in
`interruptible` within it. So no signal can skip the cleanup: neither one between the end of the
work and the start of the cleanup, nor a second one. If a signal arrives during a cleanup that was
not caused by a signal, it takes effect after the cleanup.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

# Windows has the first two.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
_ENDING = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


@dataclass
class _State:
    """The state of the main thread, the only one that receives signals.

    `depth`: number of `undisturbed` blocks around it. `deferred`: signals are only noted.
    `noted`: one was. `raised`: a signal has interrupted the command already.
    """

    depth: int = 0
    deferred: bool = False
    noted: bool = False
    raised: bool = False


_state = _State()


def interrupt_on_signals() -> None:
    """Let the first ending signal raise KeyboardInterrupt, unless it is ignored (nohup)."""
    _state.noted = _state.raised = False
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _on_signal)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Note signals during the block; raise KeyboardInterrupt after it if one arrived."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread, and only it may set their handlers
        return
    outermost, before = _state.depth == 0, _state.deferred
    _state.deferred = True
    _state.depth += 1
    handlers = {number: signal.getsignal(number) for number in _ENDING} if outermost else {}
    if outermost:
        _state.noted = _state.raised = False
    handlers = {n: one for n, one in handlers.items() if one not in (signal.SIG_IGN, None)}
    for number in handlers:
        signal.signal(number, _on_signal)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        _state.depth -= 1
        _state.deferred = before
        noted = _state.noted
        if outermost:
            _state.noted = False
    if not before and noted and not _state.raised:
        _interrupt()


@contextmanager
def interruptible() -> Iterator[None]:
    """Within `undisturbed`: let a signal interrupt this block, unless one has before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _state.deferred
    try:
        _state.deferred = False
        if _state.noted and not _state.raised:
            _interrupt()
        yield
    finally:
        _state.deferred = before


def _on_signal(number: int, frame: FrameType | None) -> None:
    if not _state.deferred and not _state.raised:
        _interrupt()
    _state.noted = True
    with suppress(OSError, RuntimeError):  # the terminal may be gone, or a print in progress
        print("fencepost: cleaning up, this takes a few seconds", flush=True)


def _interrupt() -> None:
    _state.raised = True
    raise KeyboardInterrupt
