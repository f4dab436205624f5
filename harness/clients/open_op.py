"""A client's open op and its process number, by the events that it writes.

Some of its events complete no op that the harness sent: a library's reports (`lost`, `renewed`) and
the client's own `close`. They are recorded, and the harness does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from fencepost.checker.history.history import SPONTANEOUS
from fencepost.harness.clients.event import Event

_CLOSE = "close"


class OpenOp:
    """`process` is the client's number, `stride` the difference to its successor's.

    `completion`: of the last op, until it is taken. `works`: it works by itself. Not safe for
    threads: the worker's lock must be held.
    """

    def __init__(self, process: int, stride: int) -> None:
        self.process = process
        self.works = False
        self.completion: dict[str, Any] | None = None
        self._stride = stride
        self._open: Event | None = None
        self._closing: Event | None = None
        # Whether an op that was sent has no answer.
        self._asked = False

    @property
    def op(self) -> Event | None:
        """The op that it has begun, and not completed."""
        return self._open

    @property
    def begun(self) -> list[Event]:
        """All ops that it has begun, and not completed."""
        return [event for event in (self._open, self._closing) if event is not None]

    @property
    def closing(self) -> bool:
        """Whether it has begun its close, and not completed it."""
        return self._closing is not None

    @property
    def unheard(self) -> bool:
        """Whether the client may have acted without a recorded event.

        A client that has begun the op it was sent does nothing else.
        """
        return self.works or (self._asked and self._open is None)

    def sent(self) -> None:
        """Record that an op is sent to it."""
        self.completion, self._asked = None, True

    def declined(self, type: str) -> None:
        """Record that it does not begin the op that it was sent."""
        self.completion, self._asked = {"type": type}, False

    def take_completion(self) -> dict[str, Any] | None:
        found, self.completion = self.completion, None
        return found

    def take(self, events: list[Event], lines: Sequence[bytes]) -> None:
        """Take the events that it wrote, and their `lines`."""
        close = _last(events, lambda f: f == _CLOSE)
        if close is not None:
            self._closing = events[close] if events[close].type == "invoke" else None
        place = _last(events, lambda f: f != _CLOSE and f not in SPONTANEOUS)
        if place is None:
            return
        # The current op; earlier ones in the same chunk have ended. The number comes from ops
        # alone: the close after an `info` still carries the old one.
        last = events[place]
        self._open = last if last.type == "invoke" else None
        self.process = last.process + (self._stride if last.type == "info" else 0)
        if last.type != "invoke":
            self._asked = False
            self.completion = msgspec.json.decode(lines[place])

    def end(self) -> None:
        """Record that it has ended."""
        self._open = self._closing = None


def _last(events: list[Event], wanted: Callable[[str], bool]) -> int | None:
    """Return the index of the last event whose `f` is wanted; None if there is none."""
    places = range(len(events) - 1, -1, -1)
    return next((place for place in places if wanted(events[place].f)), None)
