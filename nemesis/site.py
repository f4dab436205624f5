"""The nemesis' view of the cluster. Harness objects implement these protocols; nothing is imported
from the harness."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

PROCESSES = 3
"""An elector's process may end at the moment of a fault. Then the fault hits its successor, or the
next one."""


class Result(Protocol):
    @property
    def code(self) -> int: ...
    @property
    def out(self) -> str: ...
    @property
    def err(self) -> str: ...


class Remote(Protocol):
    def run(
        self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True
    ) -> Result: ...
    def put(self, path: str, content: bytes) -> None: ...
    def signal(self, pid: int, number: int, started: str | None = None) -> bool: ...
    def state(self, pid: int, started: str | None = None) -> str | None: ...


def ask(remote: Remote, *words: str) -> dict[str, Any]:
    """Run a verb of fencepost-node (node/command.py), and return its answer."""
    answer: dict[str, Any] = json.loads(remote.run(["fencepost-node", *words]).out)
    return answer


class Hidden(Exception):
    """A process does not show this clock; the text gives the reason."""


class Clocked(Protocol):
    """A process whose clocks can be read from outside, relative to those of its node."""

    @property
    def shown_clocks(self) -> tuple[str, ...]: ...
    @property
    def reads_clock_file(self) -> bool:
        """Return whether it runs under libfaketime, and so reads its wall clock's offset from a
        file."""

    def mark_clock(self, clock: str) -> dict[str, Any]:
        """Return the reference of later readings; empty if a clock shows more than its change."""

    def look_at_clock(self, clock: str, mark: dict[str, Any]) -> tuple[float, float]:
        """Return bounds of the clock's offset (since the mark, if that is not empty), in seconds.

        Raises Hidden if this process does not show it, now or ever.
        """


class Server(Clocked, Protocol):
    def pid(self) -> int | None:
        """Return its pid; None if it does not run."""

    def start(self, **changed: str) -> None: ...
    def kill(self) -> int | None: ...
    def pause(self) -> int | None: ...
    def resume(self) -> int | None: ...
    def wait_ready(self) -> None: ...
    @property
    def data(self) -> str:
        """Return the folder of its data on its node; "" if the data are not fencepost's."""

    def identity(self) -> str:
        """Return what distinguishes this server from a replacement; '' if it does not answer."""


class OwnServer(Server, Protocol):
    """A server that fencepost has set up, so that its data may be deleted."""

    def wipe(self) -> None:
        """Delete its data; it must be down."""

    @property
    def removed_by_others(self) -> bool:
        """Return whether the other servers have a member list, from which one that leaves is
        removed."""


class Client(Clocked, Protocol):
    """The worker on a client node: its pid there, its start time, and its current process
    number."""

    @property
    def pid(self) -> int: ...
    @property
    def started(self) -> str | None: ...
    @property
    def process(self) -> int: ...
    @property
    def extends(self) -> bool:
        """Return whether its lock can be extended."""

    def answered(self, f: str) -> int:
        """Return how many of these ops were answered ok."""

    @property
    def counts(self) -> bool:
        """Return whether it counts its lock's requests, so that each is a failpoint."""

    def arm(self, point: str, then: str = "") -> None:
        """Stop it when it reaches the point, and after that also at `then`, if that is given."""

    def disarm(self, point: str) -> None: ...
    def wait_failpoint(self, point: str, timeout_s: float) -> bool:
        """Return whether the client reported within that time that it reached the point."""

    def leave_failpoint(self) -> None:
        """Forget the current failpoint before the client is resumed, so that it does not count as
        reached later."""

    @property
    def at_point(self) -> str | None:
        """Return the failpoint at which it has stopped, if any."""

    @property
    def connection(self) -> int:
        """Return the local port of the connection that it is about to use, if it stopped before
        that; else 0."""

    @property
    def cancelled(self) -> int:
        """Return how many calls of its lock it has reported as cancelled."""

    @property
    def cancelled_later(self) -> bool:
        """Return whether the last of them began after the request to cancel one."""

    def wait_cancelled(self, before: int, timeout_s: float) -> bool:
        """Return whether it reports within that time that it has cancelled more calls than
        `before`."""

    def wait_gone(self, timeout_s: float) -> None:
        """Wait until all output before its kill has been recorded."""


class Site(Protocol):
    """The cluster. `servers` and `clients` are node names; any other name is an error of the
    caller."""

    @property
    def servers(self) -> list[str]: ...
    @property
    def clients(self) -> list[str]: ...
    def remote(self, node: str) -> Remote: ...
    def address(self, node: str) -> str: ...
    def port(self, node: str) -> int | None:
        """Return the port that the node's server listens on; None for a client."""

    def server(self, node: str) -> Server: ...
    def own_server(self, node: str) -> OwnServer:
        """Return the server for faults that need one of fencepost's own (Family.ours_alone);
        ValueError for an external one."""

    def client(self, node: str) -> Client: ...
    def restart_client(self, node: str) -> Client: ...
    def primary(self) -> str | None:
        """Return the server that reports that it leads now, if any."""

    def holder(self, for_s: float) -> str | None:
        """Return the client that was granted a lock last, of those that have held one for at least
        this long, with as much of the lease left; None without one."""

    def leased(self) -> list[str]:
        """Return the clients whose lease of a lock is running, also if they no longer count on
        it."""

    def released_late(self, node: str) -> bool:
        """Return whether the lease was over of the hold that a client has released last, or is
        releasing."""

    def grants(self, without: str) -> int:
        """Return how many grants were recorded of the lock that a client was granted last, leaving
        out those to this client."""


Arguments = dict[str, Any]
