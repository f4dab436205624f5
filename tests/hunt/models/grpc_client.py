"""A client of etcd's gRPC: one connection to a real server, or to the model."""

from __future__ import annotations

import socket
import struct
import time
from heapq import heappop
from types import SimpleNamespace
from typing import Any

from fencepost.hunt.models import hpack
from fencepost.hunt.models.etcd import protobuf
from fencepost.hunt.models.etcd.grpc import _METHODS
from fencepost.hunt.models.etcd.server import Cluster, EtcdServer
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.world import World

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
PATHS = {kind: path for path, (_, kind) in _METHODS.items()}


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    return len(content).to_bytes(3, "big") + struct.pack("!BBI", kind, flags, stream) + content


class Client:
    """`answers`: by stream, the messages; `status`: by stream, gRPC's code and words at its end."""

    def __init__(self) -> None:
        self._last = -1
        self._rest = b""
        self._fields = hpack.Reader()
        self._kinds: dict[int, str] = {}
        self._data: dict[int, bytes] = {}
        self.answers: dict[int, list[dict[str, Any]]] = {}
        self.status: dict[int, tuple[int, str]] = {}
        self.send(PREFACE + frame(SETTINGS, 0, 0))

    def send(self, data: bytes) -> None:
        raise NotImplementedError

    def begin(self, kind: str) -> int:
        """Begin a call, and return its stream."""
        self._last += 2
        stream = self._last
        self._kinds[stream], self._data[stream], self.answers[stream] = kind, b"", []
        fields = hpack.write([
            (":method", "POST"), (":scheme", "http"), (":path", PATHS[kind]), (":authority", "x"),
            ("content-type", "application/grpc"), ("te", "trailers"),
        ])  # fmt: skip
        self.send(frame(HEADERS, 4, stream, fields))
        return stream

    def say(self, stream: int, body: dict[str, Any], last: bool = False) -> None:
        message = protobuf.encode(f"{self._kinds[stream]}Request", body)
        whole = struct.pack("!BI", 0, len(message)) + message
        self.send(frame(DATA, int(last), stream, whole))

    def call(self, kind: str, body: dict[str, Any]) -> tuple[tuple[int, str], list[dict[str, Any]]]:
        """Return the status and the messages of a call with one request."""
        stream = self.begin(kind)
        self.say(stream, body, last=True)
        self.until(lambda: stream in self.status)
        return self.status[stream], self.answers[stream]

    def until(self, true: Any) -> None:
        assert true()

    def take(self, data: bytes) -> None:
        self._rest += data
        while len(self._rest) >= 9:
            length = int.from_bytes(self._rest[:3], "big")
            if len(self._rest) < 9 + length:
                return
            kind, flags, stream = struct.unpack("!BBI", self._rest[3:9])
            content, self._rest = self._rest[9 : 9 + length], self._rest[9 + length :]
            if kind in (SETTINGS, PING) and not flags & 1:
                self.send(frame(kind, 1, 0, content if kind == PING else b""))
            assert kind not in (GOAWAY, RESET), content
            if kind == HEADERS:
                fields = dict(self._fields.read(content))
                if "grpc-status" in fields:
                    words = fields.get("grpc-message", "")
                    self.status[stream] = int(fields["grpc-status"]), words
            if kind == DATA:
                self._data[stream] += content
                self._messages(stream)

    def _messages(self, stream: int) -> None:
        data = self._data[stream]
        while len(data) >= 5 and len(data) >= 5 + (size := struct.unpack("!I", data[1:5])[0]):
            body = protobuf.decode(f"{self._kinds[stream]}Response", data[5 : 5 + size])
            self.answers[stream].append(body)
            data = data[5 + size :]
        self._data[stream] = data


class Real(Client):
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        super().__init__()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def until(self, true: Any, within_s: float = 60.0) -> None:
        end = time.monotonic() + within_s
        while not true():
            left = end - time.monotonic()
            assert left > 0, "no answer"
            self._socket.settimeout(left)
            data = self._socket.recv(1 << 16)
            assert data, "the server closed the connection"
            self.take(data)

    def close(self) -> None:
        self._socket.close()


class Modelled(Client):
    """The model answers at once. `cut`: into how many bytes its input is cut."""

    def __init__(self, version: str = "3.4", cut: int = 1 << 16) -> None:
        self.world = World()
        self.cluster = Cluster(Network(self.world, None), version != "3.4")
        self.server = EtcdServer("etcd-1", 0, self.cluster)
        self.session = self.server.session()
        link = SimpleNamespace(network=self.cluster.network, session=self.session, closed=False)
        self.session.line = SimpleNamespace(open=True, say=self._say, link=link)  # type: ignore[assignment]
        self._cut = cut
        super().__init__()

    def _say(self, data: bytes) -> None:
        self.take(data)

    def send(self, data: bytes) -> None:
        for at in range(0, len(data), self._cut):
            for command in self.session.commands(data[at : at + self._cut]):
                self.session.execute(self.server, command)
        while self.world.queue and self.world.queue[0][0] <= self.world.now:
            heappop(self.world.queue)[2].due()

    def close(self) -> None:
        self.session.left()
