"""The answers of a client to orders, kept until the harness takes them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from fencepost.harness.clients.answer import Answer

# Report which client is being waited for after this time, and then at the same interval.
_SLOW_S = 5.0
# Few are kept, unless a client sends answers without orders.
_KEPT = 20
Answered = TypeVar("Answered", bound=Answer)


class Answers:
    """`changed` is notified whenever the client sends anything; hold it to add an answer."""

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._kept: deque[Answer] = deque(maxlen=_KEPT)

    def add(self, answer: Answer) -> None:
        self._kept.append(answer)

    def forget(self, kind: type[Answer]) -> None:
        """Drop the answers of a kind, so that the next one is new."""
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
        """Take the first answer of a kind; None if none came in time, or before it was `over`.

        `slow` is called at intervals during the wait.
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
