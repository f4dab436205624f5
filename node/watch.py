"""Bounds the offset of another clock by reading the node's own before and after."""

from __future__ import annotations

import time

Bounds = dict[str, float]


class Hidden(Exception):
    """The server does not show this clock; the text gives the reason."""


class Watch:
    """Reads the node's clock before and after another clock is read."""

    def __init__(self, clock: int) -> None:
        self._clock = clock
        self.before_ns = time.clock_gettime_ns(clock)

    def bounds(self, shown_ns: int, grain_ns: int = 0) -> Bounds:
        """Return the offset of a clock that showed this since the watch began, rounded down to a
        grain."""
        after_ns = time.clock_gettime_ns(self._clock)
        return {
            "low_s": (shown_ns - after_ns) / 1e9,
            "high_s": (shown_ns + grain_ns - self.before_ns) / 1e9,
        }
