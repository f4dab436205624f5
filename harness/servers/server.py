"""One server on its node: what a test and a nemesis do with it.

What differs between Redis, ZooKeeper and etcd is in each one's `Kind`, in a file of its own.
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
from fencepost.harness.servers.wait import AGAIN_S, START_S, Say, said, silent, until
from fencepost.nemesis.site import Hidden
from fencepost.node.kind import Kind
from fencepost.node.places import DATA, LOGS, PID_FILE, PROGRAM
from fencepost.node.processes import Process

# How long a process may take to die that was killed.
_GONE_S = 20.0
# How long a command may take that starts a server, or wipes its data.
_COMMAND_S = 120.0


class Server:
    """A server by its node's Remote. `settings` are those of node/server.py."""

    def __init__(
        self, remote: Remote, kind: Kind, settings: Mapping[str, str], version: str = ""
    ) -> None:
        self.node = remote.node
        self._version = version or kind.versions[0]
        self.kind = kind
        self._remote = remote
        self._settings = settings

    @property
    def port(self) -> int:
        return self.kind.port

    def start(self, **changed: str) -> None:
        """Start it, unless it runs, with these settings changed. `ready` tells when it serves."""
        if not self.running():
            wanted = {"VERSION": self._version, **self._settings, **changed}
            settings = [f"{name}={value}" for name, value in wanted.items()]
            self._ask("start", *settings, timeout_s=_COMMAND_S)

    def pid(self) -> int | None:
        """Its pid; None if it does not run."""
        process = self._recorded()
        return process.pid if process is not None and self._lives(process) else None

    def _recorded(self) -> Process | None:
        """What the node's pid file says, of a live process or a dead one.

        Raises:
            NoAnswer: the node does not say. A server that is stopped must not pass for none.
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
        """Wait until the node has a pid file. Raise Crashed if it does not get one."""
        words = f"waiting for {self.node} to start its server"
        if not until(lambda: self._recorded() is not None, START_S, said(say, words)):
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
        """The server's other processes, which only PostgreSQL has."""
        return children(self._remote, process) if self.kind.forks else []

    @property
    def data(self) -> str:
        """The folder of its data on its node."""
        return f"{DATA}/{self.kind.role}"

    def wipe(self) -> None:
        """Delete its data; the server must be down."""
        self._ask("wipe", timeout_s=_COMMAND_S)

    def settle(self) -> None:
        """Let a lazy disk keep what was written so far, even if power fails.

        ZooKeeper, for example, does not sync its first snapshot, and cannot start without it.
        """
        if "lazy" in self._settings.get("DISK", ""):
            self._remote.run([PROGRAM, "lazy", "settle"])

    def ready(self) -> bool:
        """Whether it serves; for a cluster, whether a quorum does."""
        return self._ask("health", check=False).code == 0

    def complaint(self) -> str:
        """Why it does not serve, in its own words; '' if it does."""
        return self._ask("health", check=False).err.strip().rpartition("health: ")[2]

    def leads(self) -> bool:
        """Whether it says that it is the primary or the leader."""
        return self._ask("leads", check=False).code == 0

    def identity(self) -> str:
        """Differs between this server and one that replaces it; '' if it does not answer."""
        return self._ask("identity", check=False).out.strip()

    @property
    def removed_by_others(self) -> bool:
        return self.kind.members

    def wait_ready(self, say: Say = silent, timeout_s: float = AGAIN_S) -> None:
        """Wait until it serves; `say` is told if that takes long.

        Raises:
            Crashed: with the end of its log, if it does not serve in time, or has ended.
        """
        ended = False

        def slow(waited_s: float) -> None:
            nonlocal ended
            process = self._recorded()
            ended = process is not None and not self._lives(process)
            if not ended:
                said(say, f"waiting for {self.kind.name} on {self.node}")(waited_s)

        if until(lambda: ended or self.ready(), timeout_s, slow) and not ended:
            return
        what = "has ended" if ended else f"did not get ready within {timeout_s:.0f} s"
        raise Crashed(
            f"{self.node}: {self.kind.name} {what}. The end of its log:\n{self.log()[-1500:]}"
        )

    @property
    def _log(self) -> str:
        return f"{LOGS}/{self.kind.role}.log"

    def log(self) -> str:
        """Its log, empty if it has none; of one that is too long, what matters."""
        return serverlog.fetch(self._remote, self._log)

    def begin_log(self) -> None:
        """Let `log` begin with what it writes from now on."""
        serverlog.begin(self._remote, self._log)

    def shorten_log(self) -> None:
        """Keep its log from growing without end. RemoteError if its node does not answer."""
        serverlog.shorten(self._remote, self._log)

    def version(self) -> str:
        return self._ask("version").out.strip().splitlines()[0]

    def _ask(self, verb: str, *words: str, check: bool = True, timeout_s: float = 10.0) -> Result:
        command = [PROGRAM, verb, self.kind.name, *words]
        return self._remote.run(command, check=check, timeout_s=timeout_s)

    @property
    def shown_clocks(self) -> tuple[str, ...]:
        return tuple(self.kind.clocks)

    @property
    def reads_clock_file(self) -> bool:
        return self.kind.faketime and self._settings.get("CLOCK") == "fake"

    def mark_clock(self, clock: str) -> dict[str, Any]:
        """The start of a later `look_at_clock`. Raise RemoteError if the server does not answer."""
        return self._clocks(clock, "--mark")

    def look_at_clock(self, clock: str, mark: dict[str, Any]) -> tuple[float, float]:
        """Bounds, in s, of the difference between the clock that the server shows and its node's.

        Raises:
            Hidden: it does not show this clock.
            RemoteError: it does not answer.
        """
        seen = self._clocks(clock, "--since", json.dumps(mark))
        return seen["low_s"], seen["high_s"]

    def _clocks(self, clock: str, *options: str) -> dict[str, Any]:
        said = self._remote.run([PROGRAM, "clocks", self.kind.name, clock, *options]).out
        answer: dict[str, Any] = json.loads(said)
        if "hidden" in answer:
            raise Hidden(answer["hidden"])
        return answer
