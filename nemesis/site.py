"""What a nemesis sees of the cluster. Harness objects fit these protocols; nothing is imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


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


class Hidden(Exception):
    """A process does not show this clock; the text says why."""


class Clocked(Protocol):
    """A process whose clocks can be read from outside, against those of its node."""

    @property
    def shown_clocks(self) -> tuple[str, ...]: ...
    @property
    def reads_clock_file(self) -> bool:
        """Whether it runs under libfaketime, and so takes its wall clock's offset from a file."""

    def mark_clock(self, clock: str) -> dict[str, Any]:
        """What later looks start from: empty where a clock shows more than its change."""

    def look_at_clock(self, clock: str, mark: dict[str, Any]) -> tuple[float, float]:
        """Bounds of the clock's offset (since the mark, if that is not empty), in seconds.

        Hidden where this process does not show it, now or ever.
        """


class Server(Clocked, Protocol):
    def pid(self) -> int | None:
        """Its pid; None if it does not run."""

    def start(self, **changed: str) -> None: ...
    def kill(self) -> int | None: ...
    def pause(self) -> int | None: ...
    def resume(self) -> int | None: ...
    def wait_ready(self) -> None: ...
    @property
    def data(self) -> str:
        """The folder of its data on its node; "" where the data are none of fencepost's."""

    def identity(self) -> str:
        """What tells this server from one that comes in its place; '' where it does not answer."""


class OwnServer(Server, Protocol):
    """One that fencepost has set up, so that it may take its data away."""

    def wipe(self) -> None:
        """Forget its data; it must be down."""

    @property
    def removed_by_others(self) -> bool:
        """Whether the others keep a list of members, from which one that leaves is taken."""


class Client(Clocked, Protocol):
    """The worker on a client node: its pid there, when it was started, and the process number it
    goes by now."""

    @property
    def pid(self) -> int: ...
    @property
    def started(self) -> str | None: ...
    @property
    def process(self) -> int: ...
    def arm(self, point: str) -> None: ...
    def disarm(self, point: str) -> None: ...
    def wait_failpoint(self, point: str, timeout_s: float) -> bool:
        """Whether the client said, in that time, that it reached the point."""

    def leave_failpoint(self) -> None:
        """Called before it is resumed, so that the failpoint it was at is not taken for one that
        it has reached since."""

    @property
    def at_point(self) -> str | None:
        """The failpoint at which it has stopped, if it has."""

    @property
    def connection(self) -> int:
        """The local port of the connection that it is about to use, where it stopped before that;
        else 0."""

    def wait_gone(self, timeout_s: float) -> None:
        """Until all that it wrote before it was killed has been recorded."""


class Site(Protocol):
    """`servers` and `clients` are node names; a name of neither is an error of the caller."""

    @property
    def servers(self) -> list[str]: ...
    @property
    def clients(self) -> list[str]: ...
    def remote(self, node: str) -> Remote: ...
    def address(self, node: str) -> str: ...
    def port(self, node: str) -> int | None:
        """The port that the node's server listens on; None for a client."""

    def server(self, node: str) -> Server: ...
    def own_server(self, node: str) -> OwnServer:
        """The same, for faults that are for these alone (Family.ours_alone); ValueError for one
        that is not fencepost's own."""

    def client(self, node: str) -> Client: ...
    def restart_client(self, node: str) -> Client: ...
    def primary(self) -> str | None:
        """The server that says that it leads now, if one does."""

    def holder(self, for_s: float) -> str | None:
        """The client that was granted a lock last, of those that have held one for at least so
        long, with as much of the lease left; None: none."""

    def grants(self, without: str) -> int:
        """How many grants were recorded of the lock that a client was granted last, leaving out
        those to this client."""


Arguments = dict[str, Any]
