"""Wakeups of waiting clients, compared with what may have caused them; part of `fairness`.

Where the end of a hold or wait wakes one client (`promises.one_wakeup`), the waits within a window
of time are not woken more often than entries of the queue may have ended in it. Each request makes
one entry. This is so for each window, so that quiet grants before or after a herd hide nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from fencepost.checker.facts.ends import FOREVER
from fencepost.checker.facts.holds import seconds


class Entry(Struct, frozen=True, gc=False):
    """A request's entry in a queue: made at `begin` at the earliest, gone by `over`. Its client was
    granted the lock at `granted` (None: never), having been woken `wakeups` times. Times in ns."""

    begin: int
    over: float
    granted: int | None = None
    wakeups: int = 0


def herd(entries: Sequence[Entry], apart: int) -> dict[str, Any] | None:
    """Return the window with the most wakeups that nothing explains; None if there are none.

    `apart`: how far apart stamps of two nodes must be to be ordered (ns).
    """
    begins = sorted(one.begin for one in entries)
    overs = sorted(one.over for one in entries)
    waits = sorted((one for one in entries if one.wakeups), key=lambda one: one.begin)
    excess, since, until = _worst(waits, begins, overs, apart)
    if not excess:
        return None
    count = sum(one.wakeups for one in waits if one.begin >= since and _granted(one) <= until)
    return _evidence(since, until, count, count - excess)


def _worst(
    waits: list[Entry], begins: list[int], overs: list[float], apart: int
) -> tuple[int, int, int]:
    """Return the window (since, until) with the most unexplained wakeups, after their number.

    Entries that may have ended in it began by its end, and were not over before its begin. So the
    number is a sum over the ends of windows, plus one that depends on the begin alone.
    """
    ends = sorted({_granted(one) for one in waits})
    began = [bisect_right(begins, end + apart) for end in ends]
    sums = _Sums([before - now for before, now in zip([0, *began], began, strict=False)])
    active = len(ends)
    worst = (0, 0, 0)
    for one in reversed(waits):
        sums.add(bisect_left(ends, _granted(one)), one.wakeups)
        while active and ends[active - 1] >= one.begin:
            active -= 1
            sums.activate(active)
        most, place = sums.best()
        excess = most + bisect_left(overs, one.begin - apart)
        if excess > worst[0]:
            worst = excess, one.begin, ends[place]
    return worst


class _Sums:
    """The largest sum of the values up to an active place; a tree over the places."""

    def __init__(self, values: list[int]) -> None:
        self._size = 1 << (len(values) - 1).bit_length()
        self._sum = [0] * self._size + values + [0] * (self._size - len(values))
        self._best = [(-FOREVER, 0)] * (2 * self._size)
        for node in range(self._size - 1, 0, -1):
            self._sum[node] = self._sum[2 * node] + self._sum[2 * node + 1]

    def best(self) -> tuple[int, int]:
        """Return the largest such sum, and its place."""
        most, place = self._best[1]
        return int(most), place

    def add(self, place: int, value: int) -> None:
        """Add to the value of a place, which becomes active."""
        self._sum[place + self._size] += value
        self.activate(place)

    def activate(self, place: int) -> None:
        node = place + self._size
        self._best[node] = self._sum[node], place
        self._update(node)

    def _update(self, node: int) -> None:
        while node > 1:
            node //= 2
            left, right = 2 * node, 2 * node + 1
            self._sum[node] = self._sum[left] + self._sum[right]
            most, place = self._best[right]
            self._best[node] = max(self._best[left], (self._sum[left] + most, place))


def _granted(one: Entry) -> int:
    assert one.granted is not None
    return one.granted


def _evidence(since: int, until: int, count: int, met: int) -> dict[str, Any]:
    return {
        "what": (
            f"From {seconds(since)} to {seconds(until)} waiters were woken {count} times for {met} "
            f"requests, {count / max(met, 1):.1f} for each: the end of one hold or wait wakes a "
            "herd of waiters."
        ),
        "time_ns": since,
        "valid": False,
    }
