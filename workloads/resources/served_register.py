"""The client of resources whose server asks the lock service itself (see server.py)."""

from __future__ import annotations

import json
import socket
from io import BufferedRWPair
from typing import Any

from fencepost.workloads.locks.lock import Failed, Grant, Indeterminate
from fencepost.workloads.resources.server import PORT
from fencepost.workloads.resources.store import Opening, Store

_CONNECT_S = 5.0


class ServedRegister:
    def __init__(self, at: Opening) -> None:
        self._host = at.env.address(at.storage)[0]
        self._timeout_s = at.timeout_s
        self._guard = at.guard
        self._stream: BufferedRWPair | None = None

    def read(self, resource: str) -> tuple[Any, int]:
        answer = self._ask({"read": resource})
        return answer["value"], int(answer["version"])

    def write(self, resource: str, value: Any, version: int, grant: Grant | None) -> int:
        self._guard.require(grant)
        assert grant is not None and grant.sequencer is not None
        key, revision = grant.sequencer
        request = {"write": resource, "value": value, "key": key, "revision": revision}
        return int(self._ask(request)["stored"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            stream = self._stream = self._stream or self._connect()
        except OSError as error:
            raise Failed("unreachable", f"{self._host}:{PORT}: {error}") from error
        try:
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()
            answer: dict[str, Any] = json.loads(stream.readline())
        except (OSError, ValueError) as error:
            self.close()
            raise Indeterminate("timeout", f"{self._host}:{PORT}: {error}") from error
        if "refused" in answer:
            raise Failed("refused", str(answer["refused"]))
        return answer

    def _connect(self) -> BufferedRWPair:
        connection = socket.create_connection((self._host, PORT), _CONNECT_S)
        connection.settimeout(self._timeout_s)
        stream = connection.makefile("rwb")
        connection.close()  # the stream keeps it open
        return stream

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()


STORE = Store(
    "server",
    "a server that asks the lock service with each write, in front of a Redis",
    ServedRegister,
    server="fencepost.workloads.resources.server",
)
