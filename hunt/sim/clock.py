"""Simulates a server's wall clock: it shows the true time until a fault changes it."""

from __future__ import annotations

MS = 1_000_000
MONOTONIC_NS = 10_000_000_000_000
"""A client's monotonic clock at the start of a run: far from any wall clock."""
EPOCH_NS = 1_700_000_000_000_000_000
"""The reading of a correct wall clock at the start of every run."""


class WallClock:
    """True time with an offset and a rate, both from the last change on.

    `changed` is the true time of that change, in ns. `plain`: it shows `base` plus the true time.
    """

    __slots__ = ("_rate", "base", "changed", "plain")

    def __init__(self) -> None:
        self.base = EPOCH_NS
        self._rate = 1.0
        self.plain = True
        self.changed = 0

    def ns(self, now: int) -> int:
        if self.plain:
            return self.base + now
        return self.base + int((now - self.changed) * self._rate)

    def ms(self, now: int) -> int:
        if self.plain:
            return (self.base + now) // MS
        return self.ns(now) // MS

    def jump(self, now: int, by_ns: int) -> None:
        self._set(now, self.ns(now) + by_ns, self._rate)

    def drift(self, now: int, rate: float) -> None:
        self._set(now, self.ns(now), rate)

    def right(self, now: int) -> None:
        self._set(now, EPOCH_NS + now, 1.0)

    def _set(self, now: int, shown: int, rate: float) -> None:
        self.changed = now
        self._rate = rate
        self.plain = rate == 1.0
        self.base = shown - now if self.plain else shown
