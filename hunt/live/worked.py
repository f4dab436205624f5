"""Tells clients that are always at work from clients that get no processor.

Both keep the time of a run still. The first kind must not keep it so for ever. The second kind must
not meet other events than on an idle machine, so for it time stands until it gets the processor.
"""

from __future__ import annotations

from collections.abc import Callable


class Worked:
    """The processor time of the clients of a run. `total_s` returns it. `enough_s`: how long they
    work while time stands still, until it passes all the same."""

    def __init__(self, total_s: Callable[[], float], enough_s: float) -> None:
        self._total_s = total_s
        self._enough_s = enough_s
        self._since: object = None
        self._before_s = 0.0

    def enough(self, since: object) -> bool:
        """Return whether they have worked long enough after the first call for this moment. Each
        call reads files, so it is for moments at which time has stood for long."""
        total_s = self._total_s()
        if since != self._since:
            self._since, self._before_s = since, total_s
        return total_s - self._before_s >= self._enough_s
