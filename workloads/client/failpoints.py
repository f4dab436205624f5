"""Failpoints: named places of a client's code where a test may stop the process.

`replies-in-flight` (the last server was asked, its reply not read), `acquired` (acquire has
returned), `before-write` (the write is about to be sent); a lock may name its own. Where the
requests of a client are counted, each of them has some (steps.py). On the wire a failpoint is a
`point`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Protocol

from fencepost.workloads.client.wire import Outbox


class Reached(Protocol):
    """Called when a named place of the code is reached."""

    def reach(self, name: str) -> None: ...


class Failpoints:
    """The armed failpoints. Each stops the process once.

    `hear` is called before: an order to disarm may have arrived during the op.
    """

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._armed: set[str] = set()
        self.hear: Callable[[], None] = lambda: None

    def arm(self, name: str) -> None:
        self._armed.add(name)

    def disarm(self, name: str) -> None:
        self._armed.discard(name)

    def is_armed(self, name: str) -> bool:
        return name in self._armed

    def reach(self, name: str, port: int = 0) -> None:
        """Stop here (SIGSTOP) if this one is armed, after reporting it. `port`: the local port of
        the next connection."""
        if name in self._armed:
            self.hear()
        if name in self._armed:
            self._armed.remove(name)
            with self._out.speaking:  # no output between this and the stop
                about = {"port": port} if port else {}
                self._out.answer("point", point=name, process=self._out.process, **about)
                os.kill(os.getpid(), signal.SIGSTOP)
