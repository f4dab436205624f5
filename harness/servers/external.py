"""Controls an external server, in a container that fencepost did not create, through a sidecar.

The Docker engine starts, kills and reads its container; the sidecar stops and inspects its
processes. Queries that depend on the kind (which server leads, what its clocks show) use the kind's
functions, as on any node: the sidecar shares the server's network, and so its 127.0.0.1. A server
of an unknown kind, or one that does not answer as its kind should, counts as ready when it listens
on its port.
"""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from fencepost.checker.server_log import gap
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.harness.servers.server import Server
from fencepost.harness.servers.serverlog import HEAD, TAIL
from fencepost.harness.servers.wait import AGAIN_S, Say, reporting, silent, until
from fencepost.nemesis.site import Hidden
from fencepost.node.kind import Kind
from fencepost.node.places import PROGRAM

_INIT = 1


class Sidecar(Protocol):
    """The engine's operations on the server's container (harness/cluster/sidecar.py)."""

    def signal(self, name: str) -> bool:
        """Send a signal to the container's first process; return False if the container is down."""

    def kill(self) -> bool: ...
    def start(self) -> None: ...
    @property
    def mortal(self) -> bool:
        """Whether Docker removes the container when it ends."""

    def since(self) -> str | None:
        """Return when the container was started; None if it is down."""

    def logs(self, since_s: int) -> bytes: ...


@dataclass(frozen=True)
class Tree:
    """The processes of a container: `listener`, the one on the server's port, and `pids`, all."""

    listener: int | None
    pids: tuple[int, ...]


class ForeignServer:
    """An external server, controlled as Server controls one on a node.

    `kind` None: fencepost does not know its kind. `stays`: the server keeps running after the run,
    so its monotonic clock must never be set ahead.
    """

    # fencepost manages neither its data nor its clock.
    data = ""
    reads_clock_file = False

    def __init__(
        self, remote: Remote, sidecar: Sidecar, kind: Kind | None, port: int, stays: bool
    ) -> None:
        self.node = remote.node
        self.port = port
        self._remote = remote
        self._sidecar = sidecar
        self._stays = stays
        # Answers the queries that depend on the kind, over the port.
        self._asked = Server(remote, kind, {}) if kind is not None else None
        self._begun_s = int(time.time())
        self._since = sidecar.since()
        self.shown_clocks: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind | None:
        return self._asked.kind if self._asked is not None else None

    # Its container.

    @property
    def mortal(self) -> bool:
        return self._sidecar.mortal

    def running(self) -> bool:
        return self._sidecar.since() is not None

    def start(self, **changed: str) -> None:
        """Start its container, unless it runs. Its settings are never changed."""
        self._sidecar.start()
        self._since = self._sidecar.since()

    def restarted(self) -> str:
        """Say that its container was restarted or has ended, and not by a fault; "" if neither."""
        now = self._sidecar.since()
        if now == self._since:
            return ""
        what = "has ended" if now is None else "was restarted"
        return (
            f"The container of {self.node} {what}, but not by a fault. This ended all faults that "
            "were active on it."
        )

    def kill(self) -> int | None:
        """Kill its container (SIGKILL); return the server's pid, None if it did not run."""
        pid = self.pid()
        return pid if self._sidecar.kill() else None

    def log(self) -> str:
        """Return its container's output since `begin_log`; of a long one, the start and the end.

        Return "" if it cannot be read. The first line gives the start time, because the container
        may have written nothing.
        """
        try:
            output = self._sidecar.logs(self._begun_s)
        except Crashed:
            return ""
        first = f"The log of its container since {datetime.fromtimestamp(self._begun_s, UTC)}:\n"
        if len(output) <= HEAD + 2 * TAIL:
            return first + output.decode(errors="replace")
        begin, end = output[:HEAD], output[-TAIL:]
        missing = gap(len(output) - HEAD - TAIL, searched=False)
        return first + begin.decode(errors="replace") + missing + end.decode(errors="replace")

    def begin_log(self) -> None:
        """Let `log` start at this moment."""
        self._begun_s = int(time.time())

    def shorten_log(self) -> None:
        """Do nothing: the Docker engine limits the log by its own rules."""

    # Its processes.

    def pid(self) -> int | None:
        """Return the pid, in its container, of the process that listens; None if none does."""
        return self._tree().listener if self.running() else None

    def pause(self) -> int | None:
        """Stop every process of its container; return the server's pid, None if it did not run."""
        return self._signal("STOP", signal.SIGSTOP)

    def resume(self) -> int | None:
        return self._signal("CONT", signal.SIGCONT)

    def _signal(self, name: str, number: signal.Signals) -> int | None:
        # The first process comes first, so that it starts no more children. It accepts this signal
        # only from the engine.
        if not self._sidecar.signal(name):
            return None
        tree = self._tree()
        for pid in tree.pids:
            if pid != _INIT:
                self._remote.signal(pid, number)
        return tree.listener

    def stopped(self) -> list[int]:
        """Return the pids of its container's stopped processes."""
        return [pid for pid in self._tree().pids if self._remote.state(pid) == "T"]

    def _tree(self) -> Tree:
        answer = json.loads(
            self._remote.run([PROGRAM, "process", "listener", str(self.port)]).out or "null"
        )
        return Tree(answer["pid"], tuple(answer["tree"]))

    # The server.

    def ready(self) -> bool:
        try:
            if self._asked is not None:
                return self._asked.ready()
            return self.pid() is not None
        except (RemoteError, Crashed):  # the container may just be ending
            return False

    def wait_ready(self, say: Say = silent, timeout_s: float = AGAIN_S) -> None:
        """Wait until it serves; report to `say` if that takes long.

        Raises:
            Crashed: it does not serve in time; the text has the end of its log.
        """
        slow = reporting(say, f"waiting for the server of {self.node}")
        if not until(self.ready, timeout_s, slow):
            raise Crashed(
                f"{self.node}: the server was not ready within {timeout_s:.0f} s. The end of its "
                f"log:\n{self.log()[-1500:]}"
            )

    def leads(self) -> bool:
        return self._asked is not None and self._asked.leads()

    def identity(self) -> str:
        return self._asked.identity() if self._asked is not None else ""

    def complaint(self) -> str:
        """Return why it is not ready, as its kind reports it; "" without a reason."""
        try:
            return _last(self._asked.complaint() if self._asked is not None else "")
        except RemoteError as error:  # the user's file of a kind may do anything
            return _last(str(error))

    def version(self) -> str:
        """Return its version; "" if it cannot be queried."""
        try:
            return self._asked.version() if self._asked is not None else ""
        except RemoteError:
            return ""

    def settle(self) -> None:
        """Do nothing: fencepost does not manage its disk."""

    # Its clocks.

    def find_clocks(self) -> str:
        """Find the clocks that it shows; return why it hides a wall clock that its kind has."""
        shown = self._asked.shown_clocks if self._asked is not None else ()
        # Only etcd's leader shows a monotonic clock, so a failure of that is not an error.
        self.shown_clocks = tuple(one for one in shown if one == "wall" or not self._stays)
        try:
            if "wall" in shown:
                self.look_at_clock("wall", self.mark_clock("wall"))
        except (Hidden, RemoteError) as error:
            self.shown_clocks = ()
            return _last(str(error))
        return ""

    def mark_clock(self, clock: str) -> dict[str, Any]:
        assert self._asked is not None
        return self._asked.mark_clock(clock)

    def look_at_clock(self, clock: str, mark: dict[str, Any]) -> tuple[float, float]:
        assert self._asked is not None
        return self._asked.look_at_clock(clock, mark)


def _last(text: str) -> str:
    """Return the last line: of a traceback, the error itself."""
    return "".join(text.strip().splitlines()[-1:])
