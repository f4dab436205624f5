"""The sessions, and when each one expires (SessionTrackerImpl, ExpiryQueue).

The time of expiry is rounded up to a tick of the server's monotonic clock (System.nanoTime), which
no fault of a hunt changes. So a session lasts up to a tick longer than its timeout.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from fencepost.hunt.sim.world import MS

TICK = 500 * MS
"""The tick with which fencepost starts ZooKeeper (harness/servers/zookeeper.py)."""
_PASSWORD = 16
_SWEEPS = 4
"""In timeouts. A run on real servers may begin at any time before a look."""


@dataclass(frozen=True)
class Timing:
    """The times in a server's configuration: its tick (tickTime), in ns; the least and the most
    timeout of a session (minSessionTimeout, maxSessionTimeout), in ms; and how often the leader
    looks for containers to delete (znode.container.checkIntervalMs), in ns."""

    tick: int
    least_ms: int
    most_ms: int
    sweep: int

    def negotiated(self, asked_ms: int) -> int:
        """Return the timeout of a session, in ms."""
        return min(max(asked_ms, self.least_ms), self.most_ms)


USUAL = Timing(TICK, 2 * TICK // MS, 20 * TICK // MS, 60_000 * MS)


def lasting(timeout_ms: int) -> Timing:
    """Return the times of a server that gives each session this timeout, whatever it asks for, and
    ends it soon after. Its leader looks for containers within a run."""
    return Timing(timeout_ms * MS // 10, timeout_ms, timeout_ms, _SWEEPS * timeout_ms * MS)


def password(session: int) -> bytes:
    """Return a session's password, which follows from its number, as ZooKeeper's does."""
    return hashlib.md5(f"fencepost {session}".encode()).digest()[:_PASSWORD]


@dataclass(slots=True)
class Tracked:
    """A session: its timeout, when it expires, and the server that it is connected to."""

    timeout_ms: int
    until: int
    owner: int


class Sessions:
    """`phase`: the time of the first tick. `longest_ms`: the longest timeout of any session."""

    def __init__(self, phase: int, tick: int = TICK) -> None:
        self.all: dict[int, Tracked] = {}
        self.longest_ms = 0
        self._phase = phase
        self._tick = tick

    def _rounded(self, time: int) -> int:
        return time - (time - self._phase) % self._tick + self._tick

    def add(self, session: int, timeout_ms: int, owner: int, now: int) -> None:
        self.longest_ms = max(self.longest_ms, timeout_ms)
        self.all[session] = Tracked(timeout_ms, self._rounded(now + timeout_ms * MS), owner)

    def touch(self, session: int, timeout_ms: int, now: int) -> bool:
        """Note that a client has sent a request; return whether it still has its session."""
        found = self.all.get(session)
        if found is None:
            return False
        found.timeout_ms = timeout_ms
        found.until = self._rounded(now + timeout_ms * MS)
        return True

    def restart(self, now: int) -> None:
        """Give each session its whole timeout again, as a server that has restarted does."""
        for one in self.all.values():
            one.until = self._rounded(now + one.timeout_ms * MS)

    def next(self) -> int | None:
        """Return when the next session expires; None if there is none."""
        return min((one.until for one in self.all.values()), default=None)

    def due(self, now: int) -> list[int]:
        """Return the sessions that have expired, in the order of their expiry."""
        over = [(one.until, session) for session, one in self.all.items() if one.until <= now]
        return [session for _, session in sorted(over)]
