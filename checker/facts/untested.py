"""Conditions that a run without contention did not test.

`lease_exclusion`, `mutual_exclusion` and `linearizable` check whether one client interfered with
another. With a single client of each lock, or without a lease that a client could see, a true
verdict proves less.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from fencepost.checker.facts.grant_events import lock_of
from fencepost.checker.history.history import Call, History

_OF_LOCKS = ("acquire", "extend", "release")


def untested(history: History, *, sees_lease: bool) -> list[str]:
    """Return the untested conditions, in short phrases.

    sees_lease: whether a client knows the deadline of one of its leases; also true if the
        checker does not depend on it.
    """
    found = []
    if not _contended(history.calls()):
        found.append("two clients that want one lock")
    if not sees_lease:
        found.append("a lease that the client can see")
    return found


def _contended(calls: Iterable[Call]) -> bool:
    """Return whether two clients used one lock.

    Processes of one node are two clients if they worked at the same time: the successor of a
    process that is gone is the same client.
    """
    spans: dict[str, dict[int | str, tuple[int | str, float, float]]] = {}
    for call in calls:
        begin = call.begin
        if begin.f not in _OF_LOCKS:
            continue
        mine = spans.setdefault(lock_of(begin.value), {})
        end = begin.time if call.end is None else call.end.time
        client, since, until = mine.get(
            begin.process, (begin.node or begin.process, begin.time, end)
        )
        mine[begin.process] = client, since, max(until, end)
    return any(_two(list(mine.values())) for mine in spans.values())


def _two(spans: list[tuple[int | str, float, float]]) -> bool:
    if len({client for client, _, _ in spans}) > 1:
        return True
    last = -1.0
    for _, since, until in sorted(spans, key=itemgetter(1, 2)):
        if since < last:
            return True
        last = max(last, until)
    return False
