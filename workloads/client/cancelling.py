"""Cancels a call of the lock when a signal asks for it (nemesis/cancel.py).

If no call is running, the next one is cancelled, a short time after it begins; if that has ended
before, the one after it. A call in an event loop is cancelled at one of its awaits. Any other is
interrupted by an exception of the signal's handler, but only in the lock's own code: the lock has
given an answer once its call has returned, and an event must be written as a whole.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from random import Random
from types import FrameType

from fencepost.workloads.client.client import CALLERS, Client
from fencepost.workloads.client.holds import Holds
from fencepost.workloads.client.wire import Outbox
from fencepost.workloads.contract.lock import Interrupt
from fencepost.workloads.locks.plain import PlainLock

SIGNAL = signal.SIGUSR1
_LATEST_S = 0.004
"""When the next call is cancelled, at the latest. The time is halved for each call that has ended
before."""
_SOON_S = 0.001
_CALLERS = (*CALLERS, PlainLock.call.__code__)
"""They call the lock's own code."""
_OURS = {one.__module__ for one in (Client, Holds, Outbox, PlainLock)}


class Cancelling:
    """Handles the signal. `out` reports each call that was cancelled. `_wanted`: a call has to be
    cancelled; `_later`: one that has begun since."""

    def __init__(self, client: Client, out: Outbox, random: Random) -> None:
        self._client, self._out, self._random = client, out, random
        self._wanted, self._later, self._latest_s = False, False, _LATEST_S
        client.call_begins = self._call_begins
        signal.signal(SIGNAL, self._asked)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        client = self._client
        self._wanted = True
        if client.in_loop:
            if not client.cancel(self._cancelled) and client.calls:
                # The call begins just now: its event loop has not heard of it yet.
                self._ring_after(_SOON_S, self._still)
        elif client.calls and _in_the_lock(frame):
            client.calls = False
            self._cancelled()
            raise Interrupt

    def _cancelled(self) -> None:
        self._out.answer("cancelled", **({"later": True} if self._later else {}))
        self._wanted, self._later, self._latest_s = False, False, _LATEST_S

    def _call_begins(self) -> None:
        if self._wanted:
            self._wanted, self._later = False, True  # not wanted until the timer has rung
            after_s, self._latest_s = self._random.uniform(0, self._latest_s), self._latest_s / 2
            self._ring_after(after_s, lambda: True)

    def _still(self) -> bool:
        """Return whether no call was cancelled, and no other one has begun, since it was asked."""
        return self._wanted

    def _ring_after(self, after_s: float, wanted: Callable[[], bool]) -> None:
        """Send this thread the signal after some time, if it is wanted then."""
        main = threading.get_ident()

        def ring() -> None:
            if wanted():
                signal.pthread_kill(main, SIGNAL)

        timer = threading.Timer(after_s, ring)
        timer.daemon = True
        timer.start()


def _in_the_lock(frame: FrameType | None) -> bool:
    """Return whether this frame runs the lock's own code, or a library's for it."""
    inner = frame
    while frame is not None and frame.f_globals.get("__name__") not in _OURS:
        frame = frame.f_back
    return frame is not None and frame is not inner and frame.f_code in _CALLERS
