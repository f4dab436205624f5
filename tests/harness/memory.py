"""A cluster in memory: nodes, servers, clients and a lock service, for tests of whole runs.

It replaces the Remote, so the harness and the nemesis run on it unchanged. A node executes each
command unless the test changes that: `Cluster.before` is called ahead of every call and may raise,
like a node that dies; `Cluster.after` is called after it, like a connection that is lost before the
answer. Clients (memory_client.py) are threads; the lock service that they share (memory_service.py)
is sound, and broken, slow or silent on demand.
"""

from __future__ import annotations

import itertools
import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fencepost.harness.cluster.timing import BOOT_ID
from fencepost.harness.remote.remote import RemoteError, Result
from fencepost.harness.servers.server import PID_FILE
from tests.harness.memory_client import RUNS, STOPPED, Program
from tests.harness.memory_service import Service


class Call(NamedTuple):
    """One call of a node: `verb` is a Remote's, `what` the command's words or the path."""

    node: str
    verb: str
    what: str


class Cluster:
    """`calls`: every call so far. `deaf`: nodes on which SIGSTOP has no effect. `netem`:
    whether their kernel has sch_netem. `logs`: by node."""

    def __init__(self) -> None:
        self.service = Service()
        self.calls: list[Call] = []
        self.before: Callable[[Call], None] = lambda call: None
        self.after: Callable[[Call], None] = lambda call: None
        self.deaf: set[str] = set()
        self.netem = True
        self.logs: dict[str, bytes] = {}
        self.ups = self.downs = 0
        self.undone: list[str] = []
        self._nodes: dict[str, Node] = {}
        self.pids = itertools.count(100)

    @property
    def nodes(self) -> list[str]:
        return list(self._nodes)

    @property
    def foreign(self) -> dict[str, Any]:
        return {}

    @property
    def versions(self) -> dict[str, str]:
        return {"cluster": "in memory"}

    @property
    def remains(self) -> list[str]:
        return []

    def up(self, nodes: Iterable[str], image: str = "") -> None:
        self.ups += 1
        for name in nodes:
            self.called(Call(name, "up", ""))
            self._nodes[name] = Node(self, name)

    def part(self) -> list[str]:
        return []

    def look(self) -> list[str]:
        return self.nodes

    def down(self) -> None:
        self.downs += 1
        for node in self._nodes.values():
            node.processes.clear()
            for program in node.programs:
                program.kill()
        self._nodes = {}

    def remote(self, node: str) -> Node:
        return self._nodes[node]

    def address(self, node: str) -> str:
        return f"10.0.0.{1 + self.nodes.index(node)}"

    def called(self, call: Call) -> None:
        """Count a call before it is executed."""
        self.calls.append(call)
        self.before(call)

    def new_pid(self) -> int:
        return next(self.pids)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    @property
    def left(self) -> list[str]:
        """Leftovers that an ended run must not have: live clients, stopped processes."""
        found = []
        for node in self._nodes.values():
            found += [f"{node.node}: a client lives" for one in node.programs if one.alive]
            stopped = [pid for pid, state in node.processes.items() if state == STOPPED]
            found += [f"{node.node}: {pid} is stopped" for pid in stopped]
        return found


class Node:
    """One node; it starts with its server running."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.node = name
        self.cluster = cluster
        self.processes: dict[int, str] = {}
        self.programs: list[Program] = []
        self.files: dict[str, bytes] = {BOOT_ID: Path(BOOT_ID).read_bytes()}
        self.changed = threading.Condition()
        self._start()

    def _start(self) -> None:
        pid = self.cluster.new_pid()
        self.processes[pid] = RUNS
        self.files[PID_FILE] = f"{pid} {born(pid)}\n".encode()

    def called(self, verb: str, what: str = "") -> None:
        self.cluster.called(Call(self.node, verb, what))

    @contextmanager
    def _call(self, verb: str, what: str = "") -> Iterator[None]:
        self.called(verb, what)
        yield
        self.cluster.after(Call(self.node, verb, what))

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        with self._call("run", " ".join(argv)):
            if "wipe" in argv:
                self.cluster.service.wipe()
            if "start" in argv:
                self._start()
            if "netem" in argv and not self.cluster.netem:
                return Result(2, "", "Error: Specified qdisc kind is unknown.")
            if argv[:2] == ["fencepost-node", "process"]:
                return Result(0, json.dumps(self._process(*argv[2:])), "")
            return Result(0, "in memory 1.0\n" if "version" in " ".join(argv) else "", "")

    def _process(self, verb: str, about: str) -> Any:
        """Answer as node/processes.py does: every program here is a client."""
        clients = [one.pid for one in self.programs if one.alive]
        if verb == "marked":
            return [{"pid": pid, "started": born(pid)} for pid in clients if about == "client"]
        pid = int(about)
        mark = "client" if pid in clients else ""
        return {"started": born(pid) if pid in self.processes else None, "mark": mark}

    def put(self, path: str, content: bytes) -> None:
        with self._call("put", path):
            self.files[path] = content

    def get(self, path: str) -> bytes:
        self.called("get", path)
        if path.startswith("/var/log/"):
            return self.cluster.logs.get(self.node, b"the server's log\n")
        if path not in self.files:
            raise RemoteError(f"{self.node}: no {path}")
        return self.files[path]

    def signal(self, pid: int, number: int, started: str | None = None) -> bool:
        with self._call("signal", signal.Signals(number).name), self.changed:
            if pid not in self.processes or started not in (None, born(pid)):
                return False
            match number:
                case signal.SIGKILL:
                    del self.processes[pid]
                case signal.SIGSTOP if self.node not in self.cluster.deaf:
                    self.processes[pid] = STOPPED
                case signal.SIGCONT:
                    self.processes[pid] = RUNS
            self.changed.notify_all()
        return True

    def state(self, pid: int, started: str | None = None) -> str | None:
        self.called("state")
        return self.processes.get(pid) if started in (None, born(pid)) else None

    def spawn(self, argv: Sequence[str]) -> Program:
        self.called("spawn")
        program = Program(self, self.cluster.new_pid(), self.cluster.service)
        self.programs.append(program)
        try:
            self.cluster.after(Call(self.node, "spawn", ""))
        except Exception:
            # Its streams close with the connection, and it ends.
            program.stdin.close()
            program.join()
            raise
        return program

    def close(self) -> None:
        pass


def born(pid: int) -> str:
    """Return when a process started: in memory no pid is used twice."""
    return f"{pid}@memory"
