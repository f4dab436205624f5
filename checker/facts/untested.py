"""What a run in which no two clients collided says nothing about.

`lease_exclusion`, `mutual_exclusion` and `linearizable` ask whether one client got in another's
way. Where there was one client only, or no client could see its lease, a yes proves less.
"""

from __future__ import annotations

from collections.abc import Iterable


def untested(clients: Iterable[int | str], *, sees_lease: bool) -> list[str]:
    """Return what was not put to the test, in short phrases.

    clients: the node (or, where it has none, the process) of each op or hold, at least one.
    sees_lease: whether a client knows until when one of its leases runs; also true where the
        checker does not ask that.
    """
    found = []
    if len(set(clients)) == 1:
        found.append("two clients that want one lock")
    if not sees_lease:
        found.append("a lease that the client can see")
    return found
