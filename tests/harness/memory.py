"""A cluster in memory: nodes, servers, clients and a lock service, for tests of whole runs.

It stands where a Remote does, so all of the harness and of the nemesis runs on it as it is. A node
answers each command well unless the test says otherwise: `Cluster.before` is asked ahead of every
call and may raise, as a node that dies does. Clients speak the line protocol of
workloads/client/program.py, stop at SIGSTOP and end at SIGKILL; the lock service that they share
is sound, and broken, slow or silent on demand.
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fencepost.harness.cluster.timing import BOOT_ID
from fencepost.harness.db.server import PID_FILE
from fencepost.harness.remote.remote import RemoteError, Result
from fencepost.workloads.critical_section import CriticalSection, Settings, work_seed

STOPPED, RUNS = "T", "S"


class Call(NamedTuple):
    """One call of a node: `verb` is a Remote's, `what` the command's words or the path."""

    node: str
    verb: str
    what: str


class Cluster:
    """`calls`: every call so far. `deaf`: nodes on which SIGSTOP has no effect."""

    def __init__(self) -> None:
        self.service = Service()
        self.calls: list[Call] = []
        self.before: Callable[[Call], None] = lambda call: None
        self.deaf: set[str] = set()
        self.ups = self.downs = 0
        self._nodes: dict[str, Node] = {}
        self.pids = itertools.count(100)

    @property
    def nodes(self) -> list[str]:
        return list(self._nodes)

    @property
    def versions(self) -> dict[str, str]:
        return {"cluster": "in memory"}

    @property
    def networks(self) -> list[str]:
        return ["memory"] if self._nodes else []

    def up(self, nodes: Iterable[str], image: str = "") -> None:
        self.ups += 1
        for name in nodes:
            self.called(Call(name, "up", ""))
            self._nodes[name] = Node(self, name)

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
        """What a run that is over must have undone: clients that live, processes that stand."""
        found = []
        for node in self._nodes.values():
            found += [f"{node.node}: a client lives" for one in node.programs if one.alive]
            stopped = [pid for pid, state in node.processes.items() if state == STOPPED]
            found += [f"{node.node}: {pid} is stopped" for pid in stopped]
        return found


class Node:
    """One node; it comes up with its server running."""

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

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        self.cluster.called(Call(self.node, "run", " ".join(argv)))
        if "start" in argv:
            self._start()
        if argv[:2] == ["fencepost-node", "process"]:
            return Result(0, json.dumps(self._process(*argv[2:])), "")
        return Result(0, "in memory 1.0\n" if "version" in " ".join(argv) else "", "")

    def _process(self, verb: str, about: str) -> Any:
        """What compose/node/processes.py answers: every program here is a client."""
        clients = [one.pid for one in self.programs if one.alive]
        if verb == "marked":
            return [{"pid": pid, "started": born(pid)} for pid in clients if about == "client"]
        pid = int(about)
        mark = "client" if pid in clients else ""
        return {"started": born(pid) if pid in self.processes else None, "mark": mark}

    def put(self, path: str, content: bytes) -> None:
        self.cluster.called(Call(self.node, "put", path))
        self.files[path] = content

    def get(self, path: str) -> bytes:
        self.cluster.called(Call(self.node, "get", path))
        if path.startswith("/var/log/"):
            return b"the server's log\n"
        if path not in self.files:
            raise RemoteError(f"{self.node}: no {path}")
        return self.files[path]

    def signal(self, pid: int, number: int, started: str | None = None) -> bool:
        self.cluster.called(Call(self.node, "signal", signal.Signals(number).name))
        with self.changed:
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
        self.cluster.called(Call(self.node, "state", ""))
        return self.processes.get(pid) if started in (None, born(pid)) else None

    def spawn(self, argv: Sequence[str]) -> Program:
        self.cluster.called(Call(self.node, "spawn", ""))
        program = Program(self)
        self.programs.append(program)
        return program

    def close(self) -> None:
        pass


def born(pid: int) -> str:
    """When a process was started: in memory no number is given away twice."""
    return f"{pid}@memory"


class Service:
    """A lock service and the store of resources, by one monotonic clock.

    `broken`: it grants a lock that somebody holds. `answers` is asked before each op of a client,
    by its node and f: it may take its time, or raise `Silent`.
    """

    def __init__(self) -> None:
        self.broken = False
        self.answers: Callable[[str, str], None] = lambda node, f: None
        self._held: dict[str, tuple[str, int]] = {}
        self._stored: dict[str, tuple[Any, int]] = {}
        self._lock = threading.Lock()

    def acquire(self, lock: str, hold: str, ttl_ns: int) -> int | None:
        """When the grant ends on CLOCK_MONOTONIC; None if somebody else holds the lock."""
        now = time.monotonic_ns()
        with self._lock:
            _, until = self._held.get(lock, ("", 0))
            if until > now and not self.broken:
                return None
            self._held[lock] = (hold, now + ttl_ns)
        return now + ttl_ns

    def release(self, lock: str, hold: str) -> bool:
        with self._lock:
            if self._held.get(lock, ("", 0))[0] != hold:
                return False
            del self._held[lock]
            return True

    def extend(self, lock: str, hold: str, ttl_ns: int) -> int | None:
        now = time.monotonic_ns()
        with self._lock:
            holder, until = self._held.get(lock, ("", 0))
            if holder != hold or until <= now:
                return None
            self._held[lock] = (hold, now + ttl_ns)
        return now + ttl_ns

    def read(self, resource: str) -> tuple[Any, int]:
        with self._lock:
            return self._stored.get(resource, (None, 0))

    def write(self, resource: str, value: Any) -> int:
        with self._lock:
            version = self._stored.get(resource, (None, 0))[1] + 1
            self._stored[resource] = (value, version)
            return version


class Killed(BaseException):
    """The client's process is gone: whatever it was doing ends here."""


class Pipe:
    """A stream in memory, with an end."""

    def __init__(self) -> None:
        self._data = b""
        self._ended = False
        self._changed = threading.Condition()

    def write(self, data: bytes, /) -> int:
        with self._changed:
            if self._ended:
                raise BrokenPipeError("the program is gone")
            self._data += data
            self._changed.notify_all()
        return len(data)

    def read(self, size: int = -1, /) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._data or self._ended)
            data, self._data = self._data, b""
            return data

    def line(self, timeout_s: float | None) -> dict[str, Any] | None:
        """The next JSON line; None where none comes in time. EOFError at the end."""
        with self._changed:
            self._changed.wait_for(lambda: b"\n" in self._data or self._ended, timeout_s)
            if b"\n" not in self._data:
                if self._ended:
                    raise EOFError
                return None
            line, _, self._data = self._data.partition(b"\n")
        message: dict[str, Any] = msgspec.json.decode(line)
        return message

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Program:
    """A client's program: orders in, events out (workloads/client/program.py has the protocol)."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.pid = node.cluster.new_pid()
        node.processes[self.pid] = RUNS
        self.stdin, self.stdout, self.stderr = Pipe(), Pipe(), Pipe()
        self._service = node.cluster.service
        self._armed: set[str] = set()
        self._count = 0
        self._thread = threading.Thread(target=self._run, name=f"client {node.node}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> int:
        self._node.cluster.called(Call(self._node.node, "wait", ""))
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise subprocess.TimeoutExpired("a client in memory", timeout or 0)
        return 0

    def kill(self) -> None:
        with self._node.changed:
            self._node.processes.pop(self.pid, None)
            self._node.changed.notify_all()
        self.stdin.close()

    def _run(self) -> None:
        try:
            self._setup = self.stdin.line(None) or {}
            self._process = self._setup["process"]
            self._say({"control": "ready", "pid": self.pid})
            self._serve()
        except EOFError:
            self._event("invoke", "close", {})
            self._event("ok", "close", {})
        except Killed:
            pass
        finally:
            with self._node.changed:
                self._node.processes.pop(self.pid, None)
            for pipe in (self.stdin, self.stdout, self.stderr):
                pipe.close()

    def _serve(self) -> None:
        while True:
            self._take(self.stdin.line(None) or {})

    def _take(self, order: dict[str, Any]) -> None:
        match order.get("control"):
            case None:
                self._apply(order["f"], order.get("value", {}))
            case "arm":
                self._armed.add(order["point"])
            case "disarm":
                self._armed.discard(order["point"])
            case "work":
                self._work(order)

    def _work(self, order: dict[str, Any]) -> None:
        seed = work_seed(self._setup["seed"], self._setup["process"])
        section = CriticalSection(msgspec.convert(order["settings"], Settings), seed)
        step, over = section.first(), False
        while not (over and step.f == "acquire"):
            ordered = self.stdin.line(step.after_s)
            if ordered is not None:
                over = over or ordered.get("control") == "rest"
                self._take(ordered)
            over = over or self._now() > order["until_ns"]
            if not (over and step.f == "acquire"):
                step = section.next(step.f, *self._apply(step.f, step.value))
        self._say({"control": "idle"})

    def _apply(self, f: str, value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if f == "write":
            self._count += 1
            mine = f"{self._setup['node']}.{self._process}.{self._count}"
            value = {"value": mine, "token": None, **value}
        self._event("invoke", f, value)
        if f == "write":
            self._reach("before-write")
        try:
            self._service.answers(self._setup["node"], f)
        except Silent:
            while True:
                self._alive()
                time.sleep(0.001)
        self._alive()
        type, answer = getattr(self, f"_{f}")(value)
        self._event(type, f, value | answer, None if type == "ok" else ["not-granted", "no"])
        if (f, type) == ("acquire", "ok"):
            self._reach("acquired")
        return type, value | answer

    def _acquire(self, value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        self._count += 1
        hold = f"{self._process}-{self._count}"
        until = self._service.acquire(value["lock"], hold, value["ttl"])
        if until is None:
            return "fail", {}
        return "ok", {"token": None, "hold": hold, "deadline": until - self._setup["origin_ns"]}

    def _extend(self, value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        until = self._service.extend(value["lock"], value["hold"], value["ttl"])
        if until is None:
            return "fail", {}
        return "ok", {"deadline": until - self._setup["origin_ns"]}

    def _release(self, value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return ("ok" if self._service.release(value["lock"], value["hold"]) else "fail"), {}

    def _read(self, value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        content, version = self._service.read(value["resource"])
        return "ok", {"value": content, "version": version}

    def _write(self, value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "ok", {"stored": self._service.write(value["resource"], value["value"])}

    def _reach(self, point: str) -> None:
        if point in self._armed:
            self._armed.remove(point)
            self._say({"control": "point", "point": point, "process": self._process})
            self._node.signal(self.pid, signal.SIGSTOP)
            self._alive()

    def _alive(self) -> None:
        """Stand while the process is stopped, and end where it was killed."""
        node = self._node
        with node.changed:
            node.changed.wait_for(lambda: node.processes.get(self.pid) != STOPPED)
            if self.pid not in node.processes:
                raise Killed

    def _now(self) -> int:
        return time.monotonic_ns() - int(self._setup["origin_ns"])

    def _event(
        self, type: str, f: str, value: dict[str, Any], error: list[str] | None = None
    ) -> None:
        event = {
            "time": self._now(), "process": self._process, "type": type, "f": f, "value": value,
            "node": self._setup["node"],
        }  # fmt: skip
        self._say(event if error is None else event | {"error": error})

    def _say(self, message: dict[str, Any]) -> None:
        self._alive()
        self.stdout.write(msgspec.json.encode(message) + b"\n")


class Silent(Exception):
    """Raised by `Service.answers`: this op is never answered."""
