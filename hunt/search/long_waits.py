"""Detects waits in a simulated run that are so long that `liveness` may blame the lock.

In most runs in which the lock was not granted for longer than the bound, no client asked for it
that long: all had done their work, or a client held the lock while it was paused. So a second pass
reads the acquires of such a run. Each violation of `liveness` needs clients that asked for longer
than the bound between two grants, or several requests in vain after it (checker/facts/dead_time.py,
turned_away.py), or a client that was refused for longer than the bound (shut_out.py). The checker
subtracts faults, leases and kills from these times, and never adds to them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fencepost.checker.facts.dead_time import PAUSES_IN_BOUND, TIMES_IN_VAIN
from fencepost.hunt.sim.record import Row


@dataclass(slots=True)
class _Request:
    """An acquire: when it began and ended (ns; at the end of the run if it did not), and its
    outcome."""

    node: Any
    begin: int
    end: int
    type: str = ""


def waited_long(rows: list[Row], bound_ns: int) -> bool:
    """Return whether clients waited longer than the bound, together or one of them.

    A grant in one mode does not serve clients that ask in another mode, so the answer is True if
    clients ask in modes.
    """
    if not rows:
        return False
    if any(row[4].get("mode") for row in rows if row[3] == "acquire"):
        return True
    requests, grants = _acquires(rows)
    pause = bound_ns / PAUSES_IN_BOUND
    stretches = _stretches(requests, pause)
    long = [
        (since, until)
        for since, until in pairwise([0, *grants, rows[-1][0]])
        if until - since > bound_ns
    ]
    return (
        any(_asked(stretches, since, until) > bound_ns for since, until in long)
        or any(_in_vain(requests, since + bound_ns, until) for since, until in long)
        or _refused(requests, pause) > bound_ns
    )


def _acquires(rows: list[Row]) -> tuple[list[_Request], list[int]]:
    """Return the acquires in order of invocation, and when the lock was granted."""
    requests: list[_Request] = []
    grants: list[int] = []
    latest: dict[int | str, _Request] = {}
    end = rows[-1][0]
    for time, process, type, f, _value, _error, node, _step in rows:
        if f != "acquire":
            continue
        if type == "invoke":
            latest[process] = _Request(node, time, end)
            requests.append(latest[process])
        else:
            latest[process].end, latest[process].type = time, type
            if type == "ok":
                grants.append(time)
    return requests, grants


def _stretches(requests: list[_Request], pause: float) -> list[tuple[int, int]]:
    """Return the times in which clients asked without a longer pause, in order."""
    found: list[tuple[int, int]] = []
    for one in requests:
        if found and one.begin <= found[-1][1] + pause:
            found[-1] = found[-1][0], max(found[-1][1], one.end)
        else:
            found.append((one.begin, one.end))
    return found


def _asked(stretches: list[tuple[int, int]], since: int, until: int) -> int:
    """Return the longest time in which clients asked, of those between two grants."""
    return max((min(end, until) - max(begin, since) for begin, end in stretches), default=0)


def _in_vain(requests: list[_Request], limit: int, until: int) -> bool:
    """Return whether TIMES_IN_VAIN requests began after `limit` and ended by `until` without a
    grant."""
    first = bisect_right(requests, limit, key=lambda one: one.begin)
    vain = [one for one in requests[first:] if one.type not in ("", "ok") and one.end <= until]
    return len(vain) >= TIMES_IN_VAIN


def _refused(requests: list[_Request], pause: float) -> float:
    """Return for how long a client was refused since it was last granted the lock, without the
    first pause of each stretch, at most."""
    longest = 0.0
    last: dict[Any, tuple[float, float]] = {}
    for one in requests:
        if one.type == "ok":
            last.pop(one.node, None)
        elif one.type == "fail":
            over, asked = last.get(one.node, (float("-inf"), 0.0))
            since = over if one.begin <= over + pause else one.begin + pause
            asked += max(0.0, one.end - since)
            last[one.node] = max(over, one.end), asked
            longest = max(longest, asked)
    return longest
