"""Grants to a process that has the lock already.

A lock that promises to be `reentrant` counts them, and each hold lasts until its own end. Another
lock may give the holder its own hold again (etcd's Mutex does, to the same session): then what ends
one of them may end all, and a later lease that is shorter counts for all. A second grant may be
followed by another while only the second is left: the three are one chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Protocol, TypeVar

FOREVER = float("inf")


class Hold(Protocol):
    """The part of a hold (holds.py) that is read here."""

    @property
    def lock(self) -> str: ...
    @property
    def process(self) -> int | str: ...
    @property
    def asked(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def given_back(self) -> float: ...
    @property
    def deadline(self) -> float: ...


Held = TypeVar("Held", bound=Hold)


def until(hold: Hold) -> float:
    """Return until when the service may regard this process as the holder, by this hold."""
    return min(hold.given_back, hold.deadline)


def doubled(found: Sequence[Held]) -> Iterator[list[Held]]:
    """Yield the chains of two holds or more, of one lock and process each, in order of grant: the
    process asked for each but the first while it had one of those before it."""
    last: dict[tuple[str, int | str], float] = {}
    twice: dict[tuple[str, int | str], list[Held]] = {}
    for hold in found:
        owner = hold.lock, hold.process
        over = until(hold)
        before = last.get(owner)
        if before is None:
            last[owner] = over
            continue
        if before > hold.asked:
            twice[owner] = []
        last[owner] = max(before, over)
    if twice:
        for hold in found:
            mine = twice.get((hold.lock, hold.process))
            if mine is not None:
                mine.append(hold)
    for mine in twice.values():
        yield from _chains(mine)


def chains(found: Sequence[Hold]) -> dict[int, int]:
    """Return for each hold of a chain the chain's number, by the grants' positions."""
    return {hold.index: number for number, chain in enumerate(doubled(found)) for hold in chain}


def _chains(mine: Sequence[Held]) -> Iterator[list[Held]]:
    chain: list[Held] = []
    over = -FOREVER
    for hold in mine:
        if over <= hold.asked:
            if len(chain) > 1:
                yield chain
            chain = []
        chain.append(hold)
        over = max(over, until(hold))
    if len(chain) > 1:
        yield chain


def ended_together(chain: Sequence[Hold]) -> dict[int, float]:
    """Return from when on the service may have ended each hold of a chain because another of them
    ended, by the grants' positions."""
    found: dict[int, float] = {}
    sooner = FOREVER
    for hold in reversed(chain):
        found[hold.index] = sooner
        sooner = min(sooner, max(hold.start, until(hold)))
    before: list[float] = []  # when they were given back
    for hold in chain:
        while before and before[0] <= hold.start:
            heappop(before)
        if before:
            found[hold.index] = min(found[hold.index], before[0])
        heappush(before, hold.given_back)
    return found
