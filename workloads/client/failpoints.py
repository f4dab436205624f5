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
    """The armed failpoints. Each stops the process once, and arms the next one if it names one.

    `hear` is called before: an order to disarm may have arrived during the op.
    """

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._armed: dict[str, str] = {}
        self.hear: Callable[[], None] = lambda: None

    def arm(self, name: str, then: str = "") -> None:
        """Stop at this one, and after that also at `then`, if that is not empty."""
        self._armed[name] = then

    def disarm(self, name: str) -> None:
        self._armed.pop(name, None)

    @property
    def armed(self) -> list[str]:
        return sorted(self._armed)

    def is_armed(self, name: str) -> bool:
        return name in self._armed

    def reach(self, name: str, port: int = 0) -> None:
        """Stop here (SIGSTOP) if this one is armed, after reporting it. `port`: the local port of
        the next connection."""
        if name in self._armed:
            self.hear()
        if name in self._armed:
            then = self._armed.pop(name)
            with self._out.speaking:  # no output between this and the stop
                about = {"port": port} if port else {}
                self._out.answer("point", point=name, process=self._out.process, **about)
                os.kill(os.getpid(), signal.SIGSTOP)
            if then:
                self.arm(then)
