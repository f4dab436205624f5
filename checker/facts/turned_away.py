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
from fencepost.checker.facts.ends import FOREVER
from fencepost.checker.facts.hindered import Hindered
from fencepost.checker.facts.holds import seconds
from fencepost.checker.facts.obstacles import Request
from fencepost.checker.facts.shut_out import alone, free_times
from fencepost.checker.facts.taken import Taken
from fencepost.checker.facts.waits import Waited
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
    lock: Waited, taken: Iterable[Taken], since: float, end_ns: int, hindered: Hindered
) -> Iterator[TurnedAway]:
    """Yield the clients that were turned away twice after the bound, in one time in which nothing
    takes the lock but requests that failed. `taken`: the spans in which clients may have the lock;
    it is free from `since` on."""
    failed = [row for row in lock.requests if _failed(*row, hindered, lock.pause)]
    if len(failed) <= TIMES_IN_VAIN:
        return
    rows = list(taken)
    excused = _Excused([one for _, one in failed], [row.begin for row in rows if row.granted])
    calls = [call for call, _ in failed]
    indices = {call.begin.index for call in calls}
    if hindered.one_by_one:
        by_itself = alone(lock.requests, lock.apart)
        calls = [call for call in calls if call.begin.index in by_itself]
    rest = (row for row in rows if row.request not in indices)
    for begin, until in free_times(rest, since, end_ns):
        limit = max(begin, excused.until(begin)) + lock.bound
        for mine in _by_client(calls, limit, until):
            if len(mine) >= TIMES_IN_VAIN:
                yield _turned_away(lock.lock, mine, limit)


class _Excused:
    """Until when requests that failed excuse the lock: the first since the last grant, and those
    before. `failed` in order of invocation; `grants`: when the lock was granted."""

    def __init__(self, failed: Sequence[Request], grants: Iterable[float]) -> None:
        self._grants = sorted([-FOREVER, *grants])
        # Where none failed since the last grant, there is nothing to blame.
        self._begins = [*(one.begin for one in failed), FOREVER]
        self._over = list(accumulate([*(one.over for one in failed), FOREVER], max))

    def until(self, now: float) -> float:
        """Return until when those may hold the lock that the last grant at this time leaves."""
        granted = self._grants[bisect_right(self._grants, now) - 1]
        first = self._begins[bisect_left(self._begins, granted)]
        return self._over[bisect_right(self._begins, first) - 1]


def _by_client(calls: Sequence[Call], since: float, until: float) -> Iterable[list[Call]]:
    """Return the calls that began after `since` and ended by `until`, by client. `calls` in order
    of invocation."""
    found: dict[int | str, list[Call]] = {}
    first, over = (
        bisect_right(calls, at, key=lambda call: call.begin.time) for at in (since, until)
    )
    for call in calls[first:over]:
        if call.end is not None and call.end.time <= until:
            found.setdefault(call.begin.node or call.begin.process, []).append(call)
    return found.values()


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
