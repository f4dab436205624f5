"""Serves the model of the API server by HTTP, for nodes that have no real one.

    serve PORT SOURCE ADDRESS...

SOURCE is the file of the objects: every write is in it before it is answered, as etcd does it. Or
it is the URL of the server that has them, which requests are forwarded to. A request that the model
does not know is answered with 501 and a sentence.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fencepost.hunt.models.kubernetes.state import Answer, State
from fencepost.hunt.models.kubernetes.status import Refusal, encoded
from fencepost.hunt.sim.unknown import Unknown

VERSION = {"major": "1", "minor": "20", "gitVersion": "v1.20.2"}
"""The version that the model is compared with."""
_LONGEST = 3 << 20
"""The longest request that kube-apiserver reads, in bytes (MaxRequestBodyBytes)."""
_FORWARD_S = 5.0

Source = Callable[[str, str, str, bytes], Answer]
"""Answers a request: method, target, media type and body."""


class Store:
    """The objects, and the file that keeps them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._state = State()
        if file.exists():
            self._state.restore(file.read_bytes())

    def answer(self, method: str, target: str, media: str, body: bytes) -> Answer:
        parts = urlsplit(target)
        path = unquote(parts.path)
        if path == "/version":
            return 200, encoded(VERSION)
        try:
            with self._lock:
                before = self._state.revision
                answer = self._state.answer(method, path, parts.query, media, body, time.time_ns())
                if self._state.revision != before:
                    self._keep()
                return answer
        except Unknown as error:
            words = f"{error}. The servers of kind kubernetes are a model"
            return 501, encoded(Refusal(501, "", words).status())

    def _keep(self) -> None:
        """Write the file; a crash leaves the old one or the new one."""
        new = self._file.with_suffix(".new")
        with new.open("wb") as written:
            written.write(self._state.stored())
            written.flush()
            os.fsync(written.fileno())
        new.replace(self._file)
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def forward(host: str, method: str, target: str, media: str, body: bytes) -> Answer:
    """Return the answer of another server; 500 if it does not answer in time, as without etcd."""
    link = http.client.HTTPConnection(host, timeout=_FORWARD_S)
    with contextlib.closing(link):
        try:
            link.request(method, target, body, {"Content-Type": media} if media else {})
            reply = link.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException):
            words = "etcdserver: request timed out"
            return 500, encoded(Refusal(500, "", words).status())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    source: Source

    def _handle(self) -> None:
        length = self.headers.get("Content-Length") or "0"
        if not length.isdecimal() or int(length) > _LONGEST or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            self._send(413, encoded(Refusal(413, "", "the body cannot be read").status()))
            return
        body = self.rfile.read(int(length))
        media = self.headers.get_content_type() if "Content-Type" in self.headers else ""
        self._send(*type(self).source(self.command, self.path, media, body))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: an election asks several times a second."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def source_of(words: str) -> Source:
    """Return the source of answers: a file of objects, or another server by its URL."""
    if words.startswith("http://"):
        return partial(forward, words.removeprefix("http://"))
    return Store(Path(words)).answer


def server(address: str, port: int, source: Source) -> ThreadingHTTPServer:
    """Return a server that listens; its `serve_forever` answers."""
    handler = type("Handler", (_Handler,), {"source": staticmethod(source)})
    return _Server((address, port), handler)


def main(words: list[str]) -> None:
    port, given, *addresses = words
    source = source_of(given)
    servers = [server(address, int(port), source) for address in addresses]
    for one in servers[1:]:
        threading.Thread(target=one.serve_forever, daemon=True).start()
    servers[0].serve_forever()
