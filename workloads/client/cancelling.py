"""Cancels a call of the lock when a signal asks for it (nemesis/cancel.py).

If no call is running, the next one is cancelled, a short time after it begins. A call in an event
loop is cancelled at one of its awaits; any other is interrupted by an exception of the signal's
handler, between two bytecodes.
"""

from __future__ import annotations

import os
import signal
import threading
from random import Random
from types import FrameType

from fencepost.workloads.client.client import Client
from fencepost.workloads.client.wire import Outbox
from fencepost.workloads.contract.lock import Interrupt

SIGNAL = signal.SIGUSR1
_LATEST_S = 0.004
"""A call of a lock on a server near by takes some milliseconds."""


class Cancelling:
    """Handles the signal. `out` reports each call that was cancelled."""

    def __init__(self, client: Client, out: Outbox, random: Random) -> None:
        self._client, self._out, self._random = client, out, random
        signal.signal(SIGNAL, self._asked)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        client = self._client
        if client.cancels:
            found = client.cancel()
        else:
            found, client.calls = client.calls, False
        if not found:
            client.call_begins = self._later
            return
        client.call_begins = None
        self._out.answer("cancelled")
        if not client.cancels:
            raise Interrupt

    def _later(self) -> None:
        self._client.call_begins = None
        delay_s = self._random.uniform(0, _LATEST_S)
        timer = threading.Timer(delay_s, os.kill, (os.getpid(), SIGNAL))
        timer.daemon = True
        timer.start()
