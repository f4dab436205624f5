"""Measures the processor time that a client's program takes for a schedule without any hunt.

A small responder answers its requests at once. No hunt of this program with new connections for
each schedule can take less.
"""

from __future__ import annotations

import os
import select
import socket
import statistics
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from fencepost.hunt.live.work_time import WorkTime
from fencepost.workloads.client.succession_file import SUCCESSION

_WARM, _COUNTED = 800, 200
"""Parts of schedules: Node.js compiles the program until then; those that count."""
_LEASE_NS = 2_000_000_000
_SCRIPT = "return {1, 1}"
_SERVER, _STORAGE = "redis-1", "storage"


def part_us(words: list[str], folder: Path, env: dict[str, str]) -> float:
    """Return the processor time of one client's part of a schedule, in us: a new lock, and an
    acquire, a read, a write and a release, on two connections."""
    with _driven(words, folder, env) as client:
        client.begin("setup")
        work, took_ns = WorkTime(client.pid), list[int]()
        while len(took_ns) < _WARM + _COUNTED:
            before_ns = work.ns() or 0
            client.begin("reset")
            # On a busy machine a client without the processor gives up.
            if client.part():
                took_ns.append((work.ns() or 0) - before_ns)
        return statistics.mean(took_ns[_WARM:]) / 1000


@contextmanager
def _driven(words: list[str], folder: Path, env: dict[str, str]) -> Iterator[_Client]:
    with subprocess.Popen(
        words, cwd=folder, env={**os.environ, SUCCESSION: os.devnull, **env},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
    ) as process:  # fmt: skip
        client = _Client(process)
        try:
            yield client
        finally:
            process.kill()
            client.close()


class _Client:
    """The program, and the servers that it reaches."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.pid = process.pid
        self._orders = process.stdin
        self._output = process.stdout.fileno()
        self._poll = select.epoll()
        self._poll.register(self._output, select.EPOLLIN)
        self._rest = b""
        self._listeners: dict[int, socket.socket] = {}
        self._connections: dict[int, socket.socket] = {}

    def begin(self, word: str) -> None:
        """Let it make a lock on new addresses."""
        self._close(self._listeners)
        made = {name: socket.create_server(("127.0.0.1", 0)) for name in (_SERVER, _STORAGE)}
        for one in made.values():
            self._listeners[one.fileno()] = one
            self._poll.register(one, select.EPOLLIN)
        self._tell({
            "control": word, "versions": [1, 2], "process": 0, "stride": 1, "node": "client-1",
            "lock": "floor", "options": {}, "servers": [_SERVER], "storage": _STORAGE,
            "addresses": {name: one.getsockname() for name, one in made.items()},
            "store": "redis", "guard": "none", "write_script": _SCRIPT, "seed": "1",
            "origin_ns": 0,
        })  # fmt: skip
        self._hear(lambda message: message.get("control") == "ready")

    def part(self) -> bool:
        """Let it acquire the lock, read, write and release; return whether it did."""
        hold = self._op("acquire", {"lock": "orders", "ttl": _LEASE_NS}).get("hold")
        about = {"resource": "account", "hold": hold}
        return hold is not None and all([
            self._op("read", about),
            self._op("write", {**about, "version": 0}),
            self._op("release", {"lock": "orders", "hold": hold}),
        ])  # fmt: skip

    def _op(self, f: str, value: dict[str, Any]) -> dict[str, Any]:
        """Let it do an op; return its value, empty if it failed."""
        self._tell({"f": f, "value": value})
        answer = self._hear(lambda one: one.get("f") == f and one.get("type") != "invoke")
        return dict(answer["value"]) if answer["type"] == "ok" else {}

    def _tell(self, message: dict[str, Any]) -> None:
        self._orders.write(msgspec.json.encode(message) + b"\n")

    def _hear(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Answer its requests until it writes such a message."""
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._output:
                    data = os.read(fd, 1 << 16)
                    if not data:
                        raise RuntimeError("the program has ended")
                    *lines, self._rest = (self._rest + data).split(b"\n")
                    found = [one for one in map(msgspec.json.decode, lines) if wanted(one)]
                    if found:
                        return dict(found[0])
                elif fd in self._listeners:
                    self._accept(self._listeners[fd])
                elif fd in self._connections:
                    self._answer(self._connections[fd])

    def _accept(self, listener: socket.socket) -> None:
        made, _ = listener.accept()
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[made.fileno()] = made
        self._poll.register(made, select.EPOLLIN)

    def _answer(self, connection: socket.socket) -> None:
        data = b""
        with suppress(ConnectionError):
            data = connection.recv(1 << 16)
        if data:
            connection.sendall(_reply(data))
        else:
            del self._connections[connection.fileno()]
            connection.close()

    def _close(self, those: dict[int, socket.socket]) -> None:
        while those:
            those.popitem()[1].close()

    def close(self) -> None:
        self._close(self._listeners)
        self._close(self._connections)
        self._poll.close()


def _reply(request: bytes) -> bytes:
    """Return the reply of a Redis server that grants everything."""
    if b"HMGET" in request:
        return b"*2\r\n$-1\r\n$-1\r\n"
    if _SCRIPT.encode() in request:
        return b"*2\r\n:1\r\n:1\r\n"
    return b"+OK\r\n" if b"\r\nNX\r\n" in request else b":1\r\n"
