"""A client in memory: a thread that replaces its program on a node.

It speaks the line protocol of workloads/client/program.py, stops at SIGSTOP and ends at SIGKILL.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from fencepost.workloads.client.critical_section import (
    GIVE_UP,
    CriticalSection,
    Settings,
    work_seed,
)
from fencepost.workloads.client.pump import over
from tests.harness.memory_service import Service, Silent

STOPPED, RUNS = "T", "S"


class Program:
    """A client's program: orders in, events out (workloads/client/program.py has the protocol)."""

    def __init__(self, node: Host, pid: int, service: Service) -> None:
        self._node, self.pid, self._service = node, pid, service
        node.processes[self.pid] = RUNS
        self.stdin, self.stdout, self.stderr = Pipe(), Pipe(), Pipe()
        # The promises that it names when it is ready, if any.
        self.names = {} if service.names is None else {"promises": service.names}
        self._armed: set[str] = set()
        self._count = 0
        self._thread = threading.Thread(target=self._run, name=f"client {node.node}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> int:
        self._node.called("wait")
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise subprocess.TimeoutExpired("a client in memory", timeout or 0)
        return 0

    def join(self) -> None:
        self._thread.join()

    def kill(self) -> None:
        with self._node.changed:
            self._node.processes.pop(self.pid, None)
            self._node.changed.notify_all()
        self.stdin.close()

    def go_on_unheard(self) -> None:
        """Lose its connection without its knowledge."""
        self.stdout.close()
        self.stdout.deaf = True

    def _run(self) -> None:
        try:
            self._live()
        except Killed:
            pass
        finally:
            with self._node.changed:
                self._node.processes.pop(self.pid, None)
            with suppress(BrokenPipeError):
                self.stdout.write(over(0))
            for pipe in (self.stdin, self.stdout, self.stderr):
                pipe.close()

    def _live(self) -> None:
        try:
            self._setup = self.stdin.line(None) or {}
        except EOFError:
            self._alive()
            return
        try:
            self._process = self._setup["process"]
            self._say({"control": "ready", "pid": self.pid, **self.names})
            self._serve()
        except EOFError:
            self._event("invoke", "close", {})
            self._event("ok", "close", {})

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
        step, over = section.first(self._now()), False
        while not (over and step.f == "acquire"):
            ordered = self.stdin.line(step.after_s)
            if ordered is not None:
                over = over or ordered.get("control") == "rest"
                self._take(ordered)
            over = over or self._now() > order["until_ns"]
            if not (over and step.f == "acquire"):
                act = self._give_up if step.f == GIVE_UP else self._apply
                step = section.next(step.f, *act(step.f, step.value), self._now())
        self._say({"control": "idle"})

    def _apply(self, f: str, value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if f == "write":
            self._count += 1
            mine = f"{self._setup['node']}.{self._process}.{self._count}"
            value = {"value": mine, "token": None, **value}
        self._event("invoke", f, value)
        # Its ops have no steps of their own: it stops for each armed failpoint before the op.
        steps = [point for point in self._armed if point.startswith("step-")]
        for point in sorted(steps, key=lambda one: int(one.split("-")[1])):
            self._reach(point)
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

    def _give_up(self, f: str, value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        self._event("info", "lost", {"lock": value["lock"], "hold": value["hold"]})
        return "ok", value | {"lost": True, "deadline": None}

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
        """Wait while the process is stopped, and end if it was killed."""
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


class Host(Protocol):
    """The node of a client, as its program sees it."""

    node: str
    processes: dict[int, str]
    changed: threading.Condition

    def called(self, verb: str, what: str = "") -> None: ...

    def signal(self, pid: int, number: int) -> bool: ...


class Pipe:
    """A stream in memory, with an end."""

    def __init__(self) -> None:
        self._data = b""
        self._ended = False
        self.deaf = False
        self._changed = threading.Condition()

    def write(self, data: bytes, /) -> int:
        with self._changed:
            if self.deaf:
                return len(data)
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
        """Return the next JSON line, None after the timeout. Raise EOFError at the end."""
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


class Killed(BaseException):
    """Raised when the client's process is killed: its thread ends at that point."""
