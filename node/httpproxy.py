"""A proxy that does one fault to every HTTP request of some clients.

- `hang`: no answer comes, and the connection stays open.
- `reset`: the connection is reset, and the server never sees the request.
- `409`, `429`, `500`, `503`: the proxy answers so, and the server never sees the request. The body
  is a Status as Kubernetes' API has it; 429 comes with a Retry-After.
- `slow`: the server carries the request out, and its answer arrives some seconds later.
- `lost`: the server carries the request out, and a reset replaces its answer.
- `watch-ends`, `watch-silent`: a watch (`?watch=true`) has no event. It ends at once, or stays
  open. The server never sees it, but answers all other requests as usual.

It counts each request before the client can see the effect.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

REASONS: Mapping[str, str] = {
    "409": "Conflict",
    "429": "TooManyRequests",
    "500": "InternalError",
    "503": "ServiceUnavailable",
}
WATCHES = ("watch-ends", "watch-silent")
KINDS = ("hang", "reset", *REASONS, "slow", "lost", *WATCHES)
PROBE = "fencepost-probe"
"""The User-Agent of fencepost's own requests, which are counted apart."""

_LONGEST = 16 << 20
_SERVER_S = 30.0
# Headers that concern one connection alone (RFC 9110, section 7.6.1).
_OF_LINK = ("connection", "keep-alive", "transfer-encoding", "content-length", "te", "upgrade")
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER for 0 s: a close sends a reset."""


@dataclass(frozen=True)
class Fault:
    """`clients`: the addresses of the clients that have it. `time_s`: the delay of `slow`, the
    Retry-After of 429. `server`: where requests are forwarded to."""

    kind: str
    clients: frozenset[str]
    server: tuple[str, int]
    time_s: float = 0.0


@dataclass
class Met:
    """How many requests of a client arrived, how many of them had the fault, and how many of these
    were fencepost's own."""

    requests: int = 0
    faulted: int = 0
    probes: int = 0


@dataclass
class Tally:
    """The counts by the client's address. `file` has them at all times, after these `facts`."""

    file: Path
    facts: Mapping[str, object] = field(default_factory=dict)
    met: dict[str, Met] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def arrives(self, client: str) -> None:
        with self._lock:
            self.met.setdefault(client, Met()).requests += 1
            self._write()

    def has_it(self, client: str, probe: bool) -> None:
        with self._lock:
            self.met[client].faulted += 1
            self.met[client].probes += probe
            self._write()

    def write(self) -> None:
        with self._lock:
            self._write()

    def _write(self) -> None:
        met = {client: asdict(one) for client, one in self.met.items()}
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps({**self.facts, "met": met}))
        os.replace(new, self.file)


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fault: Fault
    tally: Tally

    def handle(self) -> None:
        # Only chosen clients are redirected here; anybody else has found the port.
        if self.client_address[0] in self.fault.clients:
            with contextlib.suppress(OSError):  # the client is gone
                super().handle()

    def _handle(self) -> None:
        self.tally.arrives(self.client_address[0])
        length = self.headers.get("Content-Length") or "0"
        if not length.isdecimal() or int(length) > _LONGEST or "Transfer-Encoding" in self.headers:
            self._reset()
            return
        body = self.rfile.read(int(length))
        match self.fault.kind:
            case "hang":
                self._has_it()
                self._hang()
            case "reset":
                self._has_it()
                self._reset()
            case "slow" | "lost":
                self._carry_out(body)
            case "watch-ends" | "watch-silent":
                self._watch(body)
            case status:
                self._has_it()
                self._send(_refusal(status, self.fault.time_s))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _handle

    def _has_it(self) -> None:
        probe = self.headers.get("User-Agent") == PROBE
        self.tally.has_it(self.client_address[0], probe)

    def _hang(self) -> None:
        """Keep the connection open until the client closes it, or the proxy ends."""
        self.close_connection = True
        while self.connection.recv(1 << 16):
            pass

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def _watch(self, body: bytes) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if query.get("watch") not in (["true"], ["1"]):
            if (answer := self._answered(body)) is not None:
                self._send(answer)
            return
        self._has_it()
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.fault.kind == "watch-ends":
            self.wfile.write(b"0\r\n\r\n")
        else:
            self._hang()

    def _answered(self, body: bytes) -> _Answer | None:
        """Return the server's answer. Without one, which is not this fault, reset the client."""
        try:
            return self._forward(body)
        except (OSError, http.client.HTTPException):
            self._reset()
            return None

    def _carry_out(self, body: bytes) -> None:
        if (answer := self._answered(body)) is None:
            return
        self._has_it()
        if self.fault.kind == "lost":
            self._reset()
            return
        time.sleep(self.fault.time_s)
        self._send(answer)

    def _forward(self, body: bytes) -> _Answer:
        link = http.client.HTTPConnection(*self.fault.server, timeout=_SERVER_S)
        with contextlib.closing(link):
            link.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in _end_to_end(self.headers.items()):
                link.putheader(name, value)
            if body or "Content-Length" in self.headers:
                link.putheader("Content-Length", str(len(body)))
            link.endheaders(body or None)
            reply = link.getresponse()
            return _Answer(reply.status, _end_to_end(reply.getheaders()), reply.read())

    def _send(self, answer: _Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: the counts say it."""


def _end_to_end(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _OF_LINK]


def _refusal(status: str, retry_after_s: float) -> _Answer:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"a fault of fencepost answers with {status}",
        "reason": REASONS[status],
        "code": int(status),
    }
    headers = [("Content-Type", "application/json")]
    if status == "429":
        headers.append(("Retry-After", str(round(retry_after_s))))
    return _Answer(int(status), headers, json.dumps(body).encode())


class Proxy(ThreadingHTTPServer):
    """Listens on a free port; `serve_forever` serves."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: str, fault: Fault, tally: Tally) -> None:
        handler = type("Handler", (_Handler,), {"fault": fault, "tally": tally})
        super().__init__((address, 0), handler)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close the connection without ending it in order first, so that a reset can be sent."""
        self.close_request(request)
