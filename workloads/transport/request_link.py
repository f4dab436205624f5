"""Links to servers that speak HTTP or JSON lines, one request at a time.

A Link (workloads/contract/lock.py) rather than a library's client, because stopping a client
between a request and its reply, or simulating both, needs that boundary.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable
from io import BufferedRWPair
from typing import Any

from fencepost.workloads.contract.lock import Failed, Indeterminate, Link


class HttpLink:
    """A link over HTTP: `send(path, body)` posts, `receive()` returns the status and the body of
    the answer.

    Each request has its own connection, which a waiting server takes for its client.
    """

    def __init__(self, host: str, port: int, connect_s: float, read_s: float) -> None:
        self._host = host
        self._connection = http.client.HTTPConnection(host, port, timeout=connect_s)
        self._read_s = read_s

    def send(self, *command: Any) -> None:
        path, body = command
        self.close()
        try:
            self._connection.connect()
        except OSError as error:
            raise Failed("unreachable", f"{self._host}: {error}") from error
        try:
            self._connection.sock.settimeout(self._read_s)
            self._connection.request("POST", f"/v3/{path}", body=body)
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(error) from error

    def receive(self) -> tuple[int, bytes]:
        try:
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(error) from error

    def _silent(self, error: Exception) -> Indeterminate:
        self.close()
        return Indeterminate("timeout", f"{self._host}: no answer: {error!r}")

    def call(self, *command: Any) -> tuple[int, bytes]:
        self.send(*command)
        return self.receive()

    def close(self) -> None:
        self._connection.close()


class LineLink:
    """A link of JSON lines: `send(object)` writes one, `receive()` returns the object that comes
    back.

    It connects on first use, and again after an error.
    """

    def __init__(self, host: str, port: int, connect_s: float, read_s: float) -> None:
        self._address = host, port
        self._connect_s = connect_s
        self._read_s = read_s
        self._stream: BufferedRWPair | None = None

    def send(self, *command: Any) -> None:
        (request,) = command
        try:
            stream = self._stream = self._stream or self._connect()
        except OSError as error:
            raise Failed("unreachable", f"{self._named}: {error}") from error
        try:
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()
        except OSError as error:
            raise self._silent(error) from error

    def receive(self) -> dict[str, Any]:
        assert self._stream is not None
        try:
            answer: dict[str, Any] = json.loads(self._stream.readline())
        except (OSError, ValueError) as error:
            raise self._silent(error) from error
        return answer

    def _connect(self) -> BufferedRWPair:
        connection = socket.create_connection(self._address, self._connect_s)
        connection.settimeout(self._read_s)
        stream = connection.makefile("rwb")
        connection.close()  # the stream keeps it open
        return stream

    def _silent(self, error: Exception) -> Indeterminate:
        self.close()
        return Indeterminate("timeout", f"{self._named}: {error}")

    @property
    def _named(self) -> str:
        host, port = self._address
        return f"{host}:{port}"

    def call(self, *command: Any) -> dict[str, Any]:
        self.send(*command)
        return self.receive()

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()


_PROTOCOLS: dict[str, Callable[[str, int, float, float], Link]] = {
    "http": HttpLink,
    "lines": LineLink,
}


def dial(protocol: str, host: str, port: int, connect_s: float, read_s: float) -> Link:
    """Return a Link to a server that speaks `protocol`: http or lines."""
    return _PROTOCOLS[protocol](host, port, connect_s, read_s)
