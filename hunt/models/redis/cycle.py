"""Redis' periodic work, ten times a second: a check that is made in a cycle that is asked for."""

from __future__ import annotations

from collections.abc import Callable

from fencepost.hunt.sim.network import Server
from fencepost.hunt.sim.world import MS, Timer, World

CYCLE = 100 * MS
"""The period."""


class Cycle:
    """At most one check is ahead."""

    def __init__(self, server: Server, world: World, check: Callable[[], None]) -> None:
        self._server, self._world, self._check = server, world, check
        self._phase = 13 * server.index * MS
        self._alarm: Timer | None = None
        self._at = 0

    def stop(self) -> None:
        if self._alarm is not None:
            self._alarm.off = True

    def forget(self) -> None:
        """Drop all references to the run, which has ended."""
        self._alarm = None
        del self._server, self._world, self._check

    def check_past(self, wall_ms: int) -> None:
        """Check in the first cycle in which the server's clock shows a later time than this."""
        now, clock = self._world.now, self._server.clock
        # With a clock that drifts, the next check decides.
        self.check_from(max(now + 1, (wall_ms + 1) * MS - clock.base) if clock.plain else now + 1)

    def check_from(self, time: int) -> None:
        """Check in the first cycle from this time on."""
        at = time + (self._phase - time) % CYCLE
        if self._alarm is not None and not self._alarm.off:
            if self._at == at:
                return
            self._alarm.off = True
        self._check_at(at)

    def _check_at(self, at: int) -> None:
        world = self._world

        def check() -> None:
            alarm.off = True
            if world.now > at:
                # A resumed server first reads the messages that arrived during its pause (ae.c).
                self._check_at(world.now)
            else:
                self._check()

        alarm = self._alarm = Timer(self._server, check)
        self._at = at
        world.at(at, alarm)
