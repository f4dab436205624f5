"""Clients that get an error each time they ask for a lock that no client has.

A request that ends with an error may have been granted, and so it takes the lock from others for
its lease. But its client does not have the lock. If each of them excused the lock, one that answers
all requests with errors would never be blamed. So only the first one does.

Only requests count that no fault hindered, that their client did not give up by itself, and that no
other client can have disturbed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from fencepost.checker.facts.dead_time import TIMES_IN_VAIN
from fencepost.checker.facts.hindered import Hindered
from fencepost.checker.facts.holds import seconds
from fencepost.checker.facts.obstacles import Request
from fencepost.checker.facts.shut_out import alone, free_times
from fencepost.checker.facts.taken import Taken
from fencepost.checker.history.history import Call


class TurnedAway(Struct, frozen=True, gc=False):
    """A client whose requests ended with errors while no client had the lock, `many` of them after
    `limit`, by when the lock should have been granted. `kinds`: those of the errors."""

    lock: str
    who: str
    many: int
    since: float
    until: float
    limit: float
    kinds: tuple[str, ...]
    ops: tuple[int, int]

    def to_json(self) -> dict[str, object]:
        return {
            "what": (
                f"{self.who} asked for the lock {self.many} times from {seconds(self.since)} to "
                f"{seconds(self.until)} while no client had it, and got an error each time "
                f"({', '.join(self.kinds)}): the lock should have been granted by "
                f"{seconds(self.limit)}."
            ),
            "time_ns": self.until,
            "valid": False,
            "waited_s": None,
            "lock": self.lock,
            "ops": list(self.ops),
        }


def turned_away(
    lock: str,
    asked: Sequence[tuple[Call, Request]],
    taken: Iterable[Taken],
    since: float,
    end_ns: int,
    hindered: Hindered,
    bound: int,
    apart: int,
    pause: float,
) -> Iterator[TurnedAway]:
    """Yield the clients that were turned away twice after the bound, in one time in which nothing
    takes the lock but requests that failed. `asked` in order of invocation; `taken`: the spans in
    which clients may have the lock; it is free from `since` on; `pause`: how long a client waits in
    calm for a grant at most."""
    failed = [(call, one) for call, one in asked if _failed(call, one, hindered, pause)]
    if len(failed) <= TIMES_IN_VAIN:
        return
    indices = {call.begin.index for call, _ in failed}
    counted = [call for call, _ in failed]
    if hindered.one_by_one:
        by_itself = alone(asked, apart)
        counted = [call for call in counted if call.begin.index in by_itself]
    begins = [call.begin.time for call in counted]
    starts = [one.begin for _, one in failed]
    ends = list(accumulate((one.over for _, one in failed), max))
    rows = list(taken)
    grants = sorted(row.begin for row in rows if row.granted)
    rest = [row for row in rows if row.request not in indices]
    for begin, until in free_times(rest, since, end_ns):
        # The first request that failed since the last grant, and those before, may hold the lock.
        granted = grants[bisect_right(grants, begin) - 1] if grants and grants[0] <= begin else 0
        place = bisect_left(starts, granted)
        place = bisect_right(starts, starts[min(place, len(starts) - 1)])
        limit = max(begin, ends[place - 1]) + bound
        found: dict[int | str, list[Call]] = {}
        for call in counted[bisect_right(begins, limit) : bisect_right(begins, until)]:
            if call.end is not None and call.end.time <= until:
                found.setdefault(call.begin.node or call.begin.process, []).append(call)
        for calls in found.values():
            if len(calls) >= TIMES_IN_VAIN:
                yield _turned_away(lock, calls, limit)


def _failed(call: Call, one: Request, hindered: Hindered, pause: float) -> bool:
    """Return whether a request ended with an error, though its client waited until then, no fault
    hindered it, and it did not give up by itself."""
    if call.type != "info" or call.end is None or one.died or one.asked_until < call.end.time:
        return False
    node, begin, end = call.begin.node, call.begin.time, call.end.time
    kind = _kind(call)
    if kind == "cancelled" or hindered.meets(node, begin, end):
        return False
    return kind != "timeout" or (end - begin >= pause and hindered.calm(node, begin, end))


def _kind(call: Call) -> str:
    return call.end.error[0] if call.end is not None and call.end.error else "timeout"


def _turned_away(lock: str, calls: Sequence[Call], limit: float) -> TurnedAway:
    first, last = calls[0].begin, calls[-1].end
    assert last is not None
    who = first.node or f"process {first.process}"
    kinds = tuple(dict.fromkeys(map(_kind, calls)))
    times = first.time, last.time
    return TurnedAway(lock, who, len(calls), *times, limit, kinds, (first.index, last.index))
