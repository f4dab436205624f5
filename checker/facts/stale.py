"""Stale writes: accepted after a write under a hold that is certainly later.

A grant may arrive long after it was given, so the order in which grants arrived proves nothing. Of
two holds of one lock one is later if its token is higher, both having one and they differ; else if
it was asked for after the other had been granted, and granted after the other's believed hold had
ended. Otherwise the two are not ordered, and neither write is stale by the other. Of two holds of
one chain of second grants neither is later.

Every pair counts: a write of another lock, or of a hold that is not ordered with it, hides nothing.
To avoid quadratic cost, the accepted writes are summed up per lock by the facts that a stale write
could violate: the highest token and, among holds that only time orders, those not dominated in both
request and grant time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checker.facts.highest import Highest
from fencepost.checker.facts.holds import Hold
from fencepost.checker.facts.second_grants import chains
from fencepost.checker.facts.time_order import Axes
from fencepost.checker.facts.writes import Register, Write, after_others


def stale(register: Register, owners: Mapping[str, Hold], axes: Axes) -> list[tuple[Write, Write]]:
    """Yield each stale write with one of a later hold that the resource had accepted before it.

    A write whose hold is not in the history is not ordered.
    """
    held = [write for write in register.writes if write.hold in owners]
    groups, chained = _Groups(owners.values()), chains(list(owners.values()))
    return after_others(held, axes, lambda: _Later(owners, axes, groups, chained))


class _Groups:
    """The holds of a lock that time may have to order, in groups: all of them, and those of each
    token. Tokens decide if both have one and they differ, so most holds meet no other."""

    def __init__(self, found: Iterable[Hold]) -> None:
        self._many = Counter((hold.lock, hold.token) for hold in found)
        self._without = {lock for lock, token in self._many if token is None}

    def of(self, hold: Hold) -> list[Any]:
        """Return the groups in which another hold may look for this one."""
        found: list[Any] = ["all"] if hold.lock in self._without else []
        return [*found, hold.token] if hold.token is None or self._twice(hold) else found

    def against(self, hold: Hold) -> list[Any]:
        """Return the groups with the holds that time orders against this one."""
        if hold.token is None:
            return ["all"]
        found: list[Any] = [None] if hold.lock in self._without else []
        return [*found, hold.token] if self._twice(hold) else found

    def _twice(self, hold: Hold) -> bool:
        return self._many[hold.lock, hold.token] > 1


class _Later:
    """The accepted writes, indexed by the facts that make their holds later than another:
    writes.Seen."""

    def __init__(
        self,
        owners: Mapping[str, Hold],
        axes: Axes,
        groups: _Groups,
        chained: Mapping[int, int],
    ) -> None:
        self._owners = owners
        self._axes = axes
        self._groups = groups
        self._chained = chained
        self._every: list[Write] = []
        self._highest: dict[str, Highest[Write]] = {}
        self._stairs: dict[Any, _Staircase] = {}

    def add(self, write: Write) -> None:
        hold = self._owners[str(write.hold)]
        if self._chained:
            self._every.append(write)
        if hold.token is not None:
            highest = self._highest.setdefault(hold.lock, Highest())
            highest.add(hold.token, self._chained.get(hold.index), write)
        groups = self._groups.of(hold)
        for axis, asked, start in self._begun(hold) if groups else ():
            for group in groups:
                stairs = self._stairs.setdefault((hold.lock, group, axis), _Staircase())
                stairs.add(asked, start, write)

    def against(self, write: Write) -> Write | None:
        hold = self._owners[str(write.hold)]
        highest = self._highest.get(hold.lock)
        if hold.token is not None and highest is not None:
            found = highest.above(hold.token, self._chained.get(hold.index))
            if found is not None:
                return found
        found = self._in_time(hold)
        if found is None or not self._in_one_chain(write, found):
            return found
        return self._of_another_chain(write)

    def _in_one_chain(self, write: Write, other: Write) -> bool:
        mine, its = (self._chained.get(self._owners[str(w.hold)].index) for w in (write, other))
        return mine is not None and mine == its

    def _of_another_chain(self, write: Write) -> Write | None:
        """Look at every write, because one of the same chain may hide others. This is rare: the
        holder of a lock without tokens still writes under a hold that has ended, and has another.
        """
        for other in self._every:
            if self._in_one_chain(write, other):
                continue
            alone = _Later(self._owners, self._axes, self._groups, {})
            alone.add(other)
            if alone.against(write) is not None:
                return other
        return None

    def _in_time(self, hold: Hold) -> Write | None:
        groups = self._groups.against(hold)
        for axis, granted, over in self._over(hold) if groups else ():
            for group in groups:
                stairs = self._stairs.get((hold.lock, group, axis))
                found = stairs.beyond(granted, over) if stairs else None
                if found is not None:
                    return found
        return None

    def _begun(self, hold: Hold) -> list[tuple[Any, float, float]]:
        """Return when it was asked for and granted, on each axis."""
        return [
            (
                scale.axis,
                hold.asked_index if scale.by_position else hold.asked - scale.bound,
                hold.start - scale.bound,
            )
            for scale in self._axes.scales(hold.node, hold.process)
        ]

    def _over(self, hold: Hold) -> list[tuple[Any, float, float]]:
        """Return when it was granted and no longer believed, on each axis."""
        return [
            (
                scale.axis,
                hold.index if scale.by_position else hold.start + scale.bound,
                hold.believed_end + scale.bound,
            )
            for scale in self._axes.scales(hold.node, hold.process)
        ]


class _Staircase:
    """The points that no other point dominates: `asked` rises, `start` falls."""

    def __init__(self) -> None:
        self._asked: list[float] = []
        self._start: list[float] = []
        self._write: list[Write] = []

    def add(self, asked: float, start: float, write: Write) -> None:
        place = bisect_left(self._asked, asked)
        if place < len(self._asked) and self._start[place] >= start:
            return
        first = place
        while first and self._start[first - 1] <= start:
            first -= 1
        self._asked[first:place] = [asked]
        self._start[first:place] = [start]
        self._write[first:place] = [write]

    def beyond(self, asked: float, start: float) -> Write | None:
        """Return one that was asked for after this and granted no earlier than that."""
        place = bisect_right(self._asked, asked)
        if place < len(self._asked) and self._start[place] >= start:
            return self._write[place]
        return None
