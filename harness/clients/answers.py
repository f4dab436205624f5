"""The answers of a client to orders, kept until somebody who waits for one takes it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from fencepost.harness.clients.answer import Answer

# After so long, and again after each time as long, is said which client is waited for.
_SLOW_S = 5.0
# One or two are kept, unless a client answers what nobody asked.
_KEPT = 20
Answered = TypeVar("Answered", bound=Answer)


class Answers:
    """`changed` is notified whenever anything has come from the client; it is held to add one."""

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._kept: deque[Answer] = deque(maxlen=_KEPT)

    def add(self, answer: Answer) -> None:
        self._kept.append(answer)

    def forget(self, kind: type[Answer]) -> None:
        """Drop those of a kind, so that the next one of it was given from now on."""
        with self._changed:
            others = [one for one in self._kept if not isinstance(one, kind)]
            self._kept = deque(others, _KEPT)

    def wait(
        self,
        wanted: type[Answered],
        timeout_s: float,
        over: Callable[[], object],
        slow: Callable[[], None] = lambda: None,
    ) -> Answered | None:
        """Take the first one of a kind; None if none came in time, or before it was `over`.

        `slow` is called now and then while it is waited for.
        """

        def found() -> Answered | None:
            return next((one for one in self._kept if isinstance(one, wanted)), None)

        end = time.monotonic() + timeout_s
        with self._changed:
            while (left_s := end - time.monotonic()) > 0:
                if self._changed.wait_for(lambda: over() or found(), min(left_s, _SLOW_S)):
                    break
                slow()
            answer = found()
            if answer is not None:
                self._kept.remove(answer)
        return answer
