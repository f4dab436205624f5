"""The writes that a replica has acknowledged, and the clients that wait for that (WAIT)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencepost.hunt.models.redis.arguments import CommandError, integer
from fencepost.hunt.models.redis.commands import text
from fencepost.hunt.models.redis.host import Host
from fencepost.hunt.sim.network import LATER, Request
from fencepost.hunt.sim.world import MS, Timer

_AT_REPLICA = (
    "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a "
    "replica is configured to be writable (which is not the default) writes to replicas are just "
    "local and are not propagated."
)


class Acknowledged:
    """`offset`: the last acknowledged write."""

    __slots__ = ("_server", "_waiters", "offset")

    def __init__(self, server: Host) -> None:
        self.offset = 0
        self._server = server
        # Each request with the write that it waits for, and its timeout.
        self._waiters: list[tuple[Request, int, Timer]] = []

    def take(self, offset: int) -> None:
        """Note that the replica has everything up to this write; answer the requests that wait."""
        self.offset = max(self.offset, offset)
        for _, wanted, alarm in list(self._waiters):
            if self.offset >= wanted:
                alarm.off = True
                alarm.call()

    def execute(self, args: Sequence[Any], offset: int, waits: bool) -> Any:
        """Execute WAIT for the writes up to this one: return the number of replicas that have them;
        LATER if they are too few and the client `waits`."""
        if self._server.primary is not None:
            raise CommandError(_AT_REPLICA)
        wanted = integer(text(args[0]))
        _timeout_ms(args)
        have = self._replicas(offset)
        return LATER if have < wanted and waits else have

    def wait(self, request: Request, offset: int) -> None:
        """Let a client wait for the writes up to this one."""
        server, for_ms = self._server, _timeout_ms(request.asked[1:])

        def over() -> None:
            self._waiters[:] = [one for one in self._waiters if one[0] is not request]
            request.give(self._replicas(offset))

        alarm = Timer(server, over)
        self._waiters.append((request, offset, alarm))
        if for_ms:
            server.world.at(server.world.now + for_ms * MS, alarm)

    def _replicas(self, offset: int) -> int:
        return int(self._server.replica is not None and self.offset >= offset)

    def crash(self) -> None:
        self._waiters.clear()

    def forget(self) -> None:
        """Drop all references to the run, which has ended."""
        self._waiters.clear()
        del self._server


def _timeout_ms(args: Sequence[Any]) -> int:
    """Return the timeout of WAIT; 0: none."""
    try:
        found = integer(text(args[1]))
    except CommandError:
        raise CommandError("ERR timeout is not an integer or out of range") from None
    if found < 0:
        raise CommandError("ERR timeout is negative")
    return found
