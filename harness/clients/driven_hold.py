"""The hold of a client without a generator, by the client's own events (`lost`, `renewed`).

The generator in the harness relies on it. The client has one hold at a time, so that earlier ones
are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.checker.history.history import SPONTANEOUS
from fencepost.harness.clients.event import Event


class DrivenHold:
    """Not safe for threads: the worker's lock must be held."""

    def __init__(self) -> None:
        self._lost: str | None = None
        self._renewed: dict[str, int] = {}

    def take(self, events: Iterable[Event]) -> None:
        """Keep the latest event about a hold that completes no op."""
        for event in events:
            if event.f not in SPONTANEOUS or event.value is None or event.value.hold is None:
                continue
            if event.f == "lost":
                self._lost = event.value.hold
            elif event.value.deadline is not None:
                self._renewed = {event.value.hold: event.value.deadline}

    def is_lost(self, hold: str) -> bool:
        return hold == self._lost

    def deadline(self, hold: str, granted: int | None) -> int | None:
        """Return the deadline of its last renewal, or the one that was granted."""
        return self._renewed.get(hold, granted)
