"""A server in a container that is not ours, reached by a helper beside it.

Its container is started, killed and read by the engine; its processes are stopped and looked at
from the helper. What only its kind knows (who leads, what its clocks show) its kind is asked, as on
any node: the helper shares its network, and so its 127.0.0.1. A server that does not answer as its
kind would, or is of none that fencepost knows, serves when it listens on its port.
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
from fencepost.harness.servers.wait import AGAIN_S, Say, said, silent, until
from fencepost.nemesis.site import Hidden
from fencepost.node.kind import Kind
from fencepost.node.places import PROGRAM

_INIT = 1


class Helper(Protocol):
    """What the engine does to the server's container (harness/cluster/sidecar.py)."""

    def signal(self, name: str) -> bool:
        """Send it to the container's first process; False if the container is down."""

    def kill(self) -> bool: ...
    def start(self) -> None: ...
    @property
    def mortal(self) -> bool:
        """Whether Docker removes the container when it ends."""

    def since(self) -> str | None:
        """When the container was started; None if it is down."""

    def logs(self, since_s: int) -> bytes: ...


@dataclass(frozen=True)
class Tree:
    """The processes of a container: the one that listens on the server's port, and all."""

    listener: int | None
    pids: tuple[int, ...]


class ForeignServer:
    """`kind` None: one that fencepost does not know. `stays`: it is there after the run, so that
    its monotonic clock must never be ahead."""

    def __init__(
        self, remote: Remote, helper: Helper, kind: Kind | None, port: int, stays: bool
    ) -> None:
        self.node = remote.node
        self.port = port
        self._remote = remote
        self._helper = helper
        self._stays = stays
        # What its kind can be asked over its port.
        self._asked = Server(remote, kind, {}) if kind is not None else None
        self._begun_s = int(time.time())
        self._since = helper.since()
        self._clocks: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind | None:
        return self._asked.kind if self._asked is not None else None

    # Its container.

    @property
    def mortal(self) -> bool:
        return self._helper.mortal

    def running(self) -> bool:
        return self._helper.since() is not None

    def start(self, **changed: str) -> None:
        """Start its container, unless it runs. Its settings are its own."""
        self._helper.start()
        self._since = self._helper.since()

    def restarted(self) -> str:
        """That its container was started anew or has ended, and not from here; "" if it was not."""
        now = self._helper.since()
        if now == self._since:
            return ""
        what = "has ended" if now is None else "was started anew"
        return (
            f"The container of {self.node} {what}, and not by a fault: with that ended what faults "
            "were on it."
        )

    def kill(self) -> int | None:
        """Kill its container (SIGKILL); return the server's pid, None if it did not run."""
        pid = self.pid()
        return pid if self._helper.kill() else None

    def log(self) -> str:
        """What its container has written since it was first looked at; of much, begin and end.

        "" if it cannot be had; a line says where it begins, as it may have written nothing.
        """
        try:
            said = self._helper.logs(self._begun_s)
        except Crashed:
            return ""
        first = f"The log of its container since {datetime.fromtimestamp(self._begun_s, UTC)}:\n"
        if len(said) <= HEAD + 2 * TAIL:
            return first + said.decode(errors="replace")
        begin, end = said[:HEAD], said[-TAIL:]
        missing = gap(len(said) - HEAD - TAIL, searched=False)
        return first + begin.decode(errors="replace") + missing + end.decode(errors="replace")

    def begin_log(self) -> None:
        """Let `log` begin with what it writes from now on."""
        self._begun_s = int(time.time())

    def shorten_log(self) -> None:
        """The engine keeps it, by its own rules."""

    # Its processes.

    def pid(self) -> int | None:
        """The pid, in its container, of the process that listens; None if none does."""
        return self._tree().listener if self.running() else None

    def pause(self) -> int | None:
        """Stop every process of its container; return the server's pid, None if it did not run."""
        return self._signal("STOP", signal.SIGSTOP)

    def resume(self) -> int | None:
        return self._signal("CONT", signal.SIGCONT)

    def _signal(self, name: str, number: signal.Signals) -> int | None:
        # The first one first, so that it starts no more: it takes the signal from the engine alone.
        if not self._helper.signal(name):
            return None
        tree = self._tree()
        for pid in tree.pids:
            if pid != _INIT:
                self._remote.signal(pid, number)
        return tree.listener

    def stopped(self) -> list[int]:
        """The processes of its container that are stopped."""
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
        except (RemoteError, Crashed):  # it may end just now
            return False

    def wait_ready(self, say: Say = silent, timeout_s: float = AGAIN_S) -> None:
        """Wait until it serves; `say` is told if that takes long.

        Raises:
            Crashed: it does not serve in time, with the end of its log.
        """
        if not until(self.ready, timeout_s, said(say, f"waiting for the server of {self.node}")):
            raise Crashed(
                f"{self.node}: the server does not serve within {timeout_s:.0f} s. The end of its "
                f"log:\n{self.log()[-1500:]}"
            )

    def leads(self) -> bool:
        return self._asked is not None and self._asked.leads()

    def identity(self) -> str:
        return self._asked.identity() if self._asked is not None else ""

    def complaint(self) -> str:
        """What its kind has to say of it while it is not ready."""
        try:
            return _last(self._asked.complaint() if self._asked is not None else "")
        except RemoteError as error:  # a user's own file may do anything
            return _last(str(error))

    def version(self) -> str:
        """What it says of its version; "" if it cannot be asked."""
        try:
            return self._asked.version() if self._asked is not None else ""
        except RemoteError:
            return ""

    @property
    def data(self) -> str:
        """None of ours."""
        return ""

    def settle(self) -> None:
        """Its disk is its own."""

    # Its clocks.

    @property
    def shown_clocks(self) -> tuple[str, ...]:
        return self._clocks

    def find_clocks(self) -> str:
        """Try which clocks it shows; why not its wall clock, if its kind says that it does."""
        shown = self._asked.shown_clocks if self._asked is not None else ()
        # Of etcd only the leader shows its monotonic one, and no other is any the worse for it.
        self._clocks = tuple(one for one in shown if one == "wall" or not self._stays)
        try:
            if "wall" in shown:
                self.look_at_clock("wall", self.mark_clock("wall"))
        except (Hidden, RemoteError) as error:
            self._clocks = ()
            return _last(str(error))
        return ""

    @property
    def reads_clock_file(self) -> bool:
        return False

    def mark_clock(self, clock: str) -> dict[str, Any]:
        assert self._asked is not None
        return self._asked.mark_clock(clock)

    def look_at_clock(self, clock: str, mark: dict[str, Any]) -> tuple[float, float]:
        assert self._asked is not None
        return self._asked.look_at_clock(clock, mark)


def _last(text: str) -> str:
    """The last line, which says what went wrong where the others say how it came to that."""
    return "".join(text.strip().splitlines()[-1:])
