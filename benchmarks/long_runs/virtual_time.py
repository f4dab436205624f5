"""Virtual time: future events are on a heap, and records carry the current time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import msgspec

MS = 1_000_000
SECOND = 1000 * MS


class VirtualTime:
    """The clock. `now` in ns. `written`: the number of recorded ops; `over_ns`: when it
    sufficed."""

    def __init__(self, seed: str, enough: int, write: Callable[[bytes], Any]) -> None:
        self.now, self.written, self.over_ns = 0, 0, 0
        self._enough, self._write = enough, write
        self._encode = msgspec.json.Encoder().encode
        self._random = Random(seed)
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = count()

    def at(self, delay: float, act: Callable[..., None], *about: Any) -> None:
        """Run an action after this many ns."""
        heapq.heappush(self._heap, (self.now + int(delay), next(self._order), act, about))

    def ms(self, low: float, high: float) -> float:
        """Draw a time between these ms, in ns."""
        return (low + (high - low) * self._random.random()) * MS

    def run(self) -> None:
        """Run until the heap is empty."""
        while self._heap:
            self.now, _, act, about = heapq.heappop(self._heap)
            act(*about)

    def record(
        self,
        process: int | str,
        type: str,
        f: str,
        value: dict[str, Any],
        node: str | None = None,
        error: list[str] | None = None,
    ) -> None:
        """Write an op as a recorder does."""
        row = {"index": self.written, "time": self.now, "process": process, "type": type, "f": f}
        row["value"] = value
        if node:
            row["node"] = node
        if error:
            row["error"] = error
        self._write(self._encode(row) + b"\n")
        self.written += 1
        if self.written >= self._enough and not self.over_ns:
            self.over_ns = self.now
