"""Conditions that a run without contention did not test.

`lease_exclusion`, `mutual_exclusion` and `linearizable` check whether one client interfered with
another. With a single client, or without a lease that a client could see, a true verdict proves
less.
"""

from __future__ import annotations

from collections.abc import Iterable


def untested(clients: Iterable[int | str], *, sees_lease: bool) -> list[str]:
    """Return the untested conditions, in short phrases.

    clients: the node (or, without one, the process) of each op or hold, at least one.
    sees_lease: whether a client knows the deadline of one of its leases; also true if the
        checker does not depend on it.
    """
    found = []
    if len(set(clients)) == 1:
        found.append("two clients that want one lock")
    if not sees_lease:
        found.append("a lease that the client can see")
    return found
