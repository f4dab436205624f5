"""Spans of time, indexed so that a search by time does not scan all of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import islice
from math import inf
from operator import itemgetter
from typing import Generic, TypeVar

T = TypeVar("T")


class Spans(Generic[T]):
    """Items that last from a begin to an end (ns; None: never seen to end)."""

    def __init__(self, rows: Iterable[tuple[float, float | None, T]]) -> None:
        self._all: list[T] = []
        # One without end is near all that follow, and would make each search scan all.
        self._open: list[tuple[float, int]] = []
        self._open_begins: list[float] = []
        self._over: list[tuple[float, float, int]] = []
        self._begins: list[float] = []
        # The latest end in every prefix of the list.
        self._last: list[float] = []
        self._ends: list[float] = []
        latest = -inf
        for n, (begin, end, thing) in enumerate(sorted(rows, key=itemgetter(0))):
            self._all.append(thing)
            if end is None:
                self._open.append((begin, n))
                self._open_begins.append(begin)
            else:
                latest = max(latest, end)
                self._over.append((begin, end, n))
                self._begins.append(begin)
                self._last.append(latest)
                self._ends.append(max(begin, end))
        self._ends.sort()

    def touching(self, start: float, end: float) -> list[T]:
        """Return those that overlap [start, end], in order of begin."""
        right = bisect_right(self._begins, end)
        left = bisect_left(self._last, start)
        found = [place for _, over, place in self._over[left:right] if over >= start]
        found += [place for begin, place in self._open if begin <= end]
        return [self._all[place] for place in sorted(found)]

    def latest(self, start: float, end: float, most: int) -> list[T]:
        """Return the `most` latest of those that overlap [start, end], in order of begin. The cost
        does not grow with the number of the others that are active then."""
        right = bisect_right(self._begins, end)
        left = bisect_left(self._last, start)
        over = (self._over[n] for n in range(right - 1, left - 1, -1))
        found = list(islice((place for _, until, place in over if until >= start), most))
        open_ones = bisect_right(self._open_begins, end)
        found += [place for _, place in self._open[max(0, open_ones - most) : open_ones]]
        return [self._all[place] for place in sorted(found)[-most:]]

    def until(self, start: float, end: float) -> float:
        """Return the latest end of those that overlap [start, end]; minus infinity if none does."""
        if self._open_begins and self._open_begins[0] <= end:
            return inf
        right = bisect_right(self._begins, end)
        over = self._last[right - 1] if right else -inf
        return over if over >= start else -inf

    def count(self, start: float, end: float) -> int:
        """Return how many overlap [start, end]; start <= end."""
        begun = bisect_right(self._begins, end) + bisect_right(self._open_begins, end)
        return begun - bisect_left(self._ends, start)
