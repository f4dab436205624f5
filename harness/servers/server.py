"""Controls one server on its node, for a test and for a nemesis.

The `Kind` of each server has the differences between Redis, ZooKeeper and others.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from typing import Any

from fencepost.harness.errors import Crashed
from fencepost.harness.remote.processes import children
from fencepost.harness.remote.remote import NoAnswer, Remote, RemoteError, Result
from fencepost.harness.servers import serverlog
from fencepost.harness.servers.wait import AGAIN_S, START_S, Say, reporting, silent, until
from fencepost.nemesis.site import Hidden
from fencepost.node.kind import Kind
from fencepost.node.places import DATA, LOGS, PID_FILE, PROGRAM
from fencepost.node.processes import Process

# How long a killed process may take to end.
_GONE_S = 20.0
# The timeout of a command that starts a server or wipes its data.
_COMMAND_S = 120.0


class Server:
    """A server, controlled through its node's Remote. `settings` are those of node/server.py."""

    def __init__(
        self, remote: Remote, kind: Kind, settings: Mapping[str, str], version: str = ""
    ) -> None:
        self.node = remote.node
        self._version = version or kind.versions[0]
        self.kind = kind
        self._remote = remote
        self._settings = settings
        self.port = kind.port
        # The folder of its data, and its log, on the node.
        self.data, self._log = f"{DATA}/{kind.role}", f"{LOGS}/{kind.role}.log"
        self.removed_by_others = kind.members
        self.shown_clocks: tuple[str, ...] = tuple(kind.clocks)

    def start(self, **changed: str) -> None:
        """Start it, unless it runs, with these settings changed. Does not wait until it serves."""
        if not self.running():
            wanted = {"VERSION": self._version, **self._settings, **changed}
            settings = [f"{name}={value}" for name, value in wanted.items()]
            self._ask("start", *settings, timeout_s=_COMMAND_S)

    def pid(self) -> int | None:
        """Return its pid; None if it does not run."""
        process = self._recorded()
        return process.pid if process is not None and self._lives(process) else None

    def _recorded(self) -> Process | None:
        """Return the process in the node's pid file, which may have ended; None without a file.

        Raises:
            NoAnswer: the node does not answer. A stopped server must not count as no server.
        """
        try:
            pid, started = self._remote.get(PID_FILE).decode().split()
            return Process(int(pid), started)
        except NoAnswer:
            raise
        except (RemoteError, ValueError):
            return None

    def _lives(self, process: Process) -> bool:
        return self._remote.state(process.pid, process.started) is not None

    def wait_pid(self, say: Say = silent) -> None:
        """Wait until the node has a pid file. Raise Crashed if that times out."""
        slow = reporting(say, f"waiting for {self.node} to start its server")
        if not until(lambda: self._recorded() is not None, START_S, slow):
            raise Crashed(f"{self.node} did not start its server within {START_S:.0f} s")

    def running(self) -> bool:
        return self.pid() is not None

    def kill(self) -> int | None:
        """Send SIGKILL; return the pid, None if it did not run."""
        process = self._recorded()
        if process is None:
            return None
        forked = self._children(process)
        if not self._send(process, signal.SIGKILL):
            return None
        for child in forked:
            self._send(child, signal.SIGKILL)
        for one in (process, *forked):
            until(lambda one=one: not self._lives(one), _GONE_S)  # type: ignore[misc]
        return process.pid

    def pause(self) -> int | None:
        """Send SIGSTOP; return the pid, None if it did not run."""
        return self._signal(signal.SIGSTOP)

    def resume(self) -> int | None:
        """Send SIGCONT; return the pid, None if it did not run."""
        return self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> int | None:
        """Send it to the server first, so that it starts no more children, then to its children."""
        process = self._recorded()
        if process is None or not self._send(process, number):
            return None
        for child in self._children(process):
            self._send(child, number)
        return process.pid

    def _send(self, process: Process, number: signal.Signals) -> bool:
        return self._remote.signal(process.pid, number, process.started)

    def _children(self, process: Process) -> list[Process]:
        """Return the server's other processes; only PostgreSQL has such."""
        return children(self._remote, process) if self.kind.forks else []

    def wipe(self) -> None:
        """Delete its data; the server must be down."""
        self._ask("wipe", timeout_s=_COMMAND_S)

    def settle(self) -> None:
        """Make a lazy disk persist all writes so far, even if power fails.

        ZooKeeper, for example, does not sync its first snapshot, and cannot start without it.
        """
        if "lazy" in self._settings.get("DISK", ""):
            self._remote.run([PROGRAM, "lazy", "settle"])

    def ready(self) -> bool:
        """Return whether it serves; for a cluster, whether a quorum does."""
        return self._ask("health", check=False).code == 0

    def complaint(self) -> str:
        """Return why it does not serve, as it reports it; '' if it serves."""
        return self._ask("health", check=False).err.strip().rpartition("health: ")[2]

    def leads(self) -> bool:
        """Return whether it reports to be the primary or the leader."""
        return self._ask("leads", check=False).code == 0

    def identity(self) -> str:
        """Return an id that a server which replaces it does not have; '' if it does not answer."""
        return self._ask("identity", check=False).out.strip()

    def wait_ready(self, say: Say = silent, timeout_s: float = AGAIN_S) -> None:
        """Wait until it serves; report to `say` if that takes long.

        Raises:
            Crashed: it does not serve in time, or has ended; the text has the end of its log.
        """
        ended = False

        def slow(waited_s: float) -> None:
            nonlocal ended
            process = self._recorded()
            ended = process is not None and not self._lives(process)
            if not ended:
                reporting(say, f"waiting for {self.kind.name} on {self.node}")(waited_s)

        if until(lambda: ended or self.ready(), timeout_s, slow) and not ended:
            return
        what = "has ended" if ended else f"was not ready within {timeout_s:.0f} s"
        raise Crashed(
            f"{self.node}: {self.kind.name} {what}. The end of its log:\n{self.log()[-1500:]}"
        )

    def log(self) -> str:
        """Return its log, without the middle if it was shortened; empty if no log exists."""
        return serverlog.fetch(self._remote, self._log)

    def begin_log(self) -> None:
        """Let `log` start at this moment."""
        serverlog.begin(self._remote, self._log)

    def shorten_log(self) -> None:
        """Limit the size of its log. Raise RemoteError if the node does not answer."""
        serverlog.shorten(self._remote, self._log)

    def version(self) -> str:
        return self._ask("version").out.strip().splitlines()[0]

    def _ask(self, verb: str, *words: str, check: bool = True, timeout_s: float = 10.0) -> Result:
        command = [PROGRAM, verb, self.kind.name, *words]
        return self._remote.run(command, check=check, timeout_s=timeout_s)

    @property
    def reads_clock_file(self) -> bool:
        return self.kind.faketime and self._settings.get("CLOCK") == "fake"

    def mark_clock(self, clock: str) -> dict[str, Any]:
        """Return the mark for a later `look_at_clock`. Raise RemoteError without an answer."""
        return self._clocks(clock, "--mark")

    def look_at_clock(self, clock: str, mark: dict[str, Any]) -> tuple[float, float]:
        """Bound the difference, in s, between the clock that the server shows and its node's.

        Raises:
            Hidden: the server does not show this clock.
            RemoteError: the server does not answer.
        """
        seen = self._clocks(clock, "--since", json.dumps(mark))
        return seen["low_s"], seen["high_s"]

    def _clocks(self, clock: str, *options: str) -> dict[str, Any]:
        output = self._remote.run([PROGRAM, "clocks", self.kind.name, clock, *options]).out
        answer: dict[str, Any] = json.loads(output)
        if "hidden" in answer:
            raise Hidden(answer["hidden"])
        return answer
