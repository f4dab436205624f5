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
import select
import socket
import sys
import threading
import time
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from fencepost.hunt.models.kubernetes.state import Answer, State
from fencepost.hunt.models.kubernetes.status import Refusal, encoded
from fencepost.hunt.models.kubernetes.watches import Watch, is_watch
from fencepost.hunt.sim.unknown import Unknown

VERSION = {"major": "1", "minor": "20", "gitVersion": "v1.20.2"}
"""The version that the model is compared with."""
_LONGEST = 3 << 20
"""The longest request that kube-apiserver reads, in bytes (MaxRequestBodyBytes)."""
_FORWARD_S = 5.0
_END = b"\r\n\r\n"

_LOOKS_S = 1.0
"""How often a watch without events looks whether its client is still there."""
_CHUNK = 1 << 16

Events = Generator[bytes, None, None]
"""The events of a watch as they come; b"" at least every _LOOKS_S."""


class Source(Protocol):
    """Where answers come from."""

    def answer(self, method: str, target: str, media: str, body: bytes) -> Answer:
        """Execute a request."""

    def watch(self, target: str) -> Answer | Events:
        """Begin a watch, or return why not."""


class Store:
    """The objects, and the file that keeps them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Condition()
        self._state = State()
        if file.exists():
            self._state.restore(file.read_bytes())
        self._caches = self._state.started()

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
                    self._lock.notify_all()
                return answer
        except Unknown as error:
            return _unknown(error)

    def watch(self, target: str) -> Answer | Events:
        parts = urlsplit(target)
        try:
            with self._lock:
                path, now_ns = unquote(parts.path), time.time_ns()
                return self._events(self._state.watch(path, parts.query, self._caches, now_ns))
        except Unknown as error:
            return _unknown(error)

    def _events(self, watch: Watch) -> Events:
        try:
            while True:
                with self._lock:
                    found = watch.take(time.time_ns())
                    if not found and time.time_ns() < watch.ends_ns:
                        left_s = (watch.next_ns - time.time_ns()) / 1e9
                        self._lock.wait(max(0.0, min(left_s, _LOOKS_S)))
                        found = watch.take(time.time_ns())
                yield found
                if not found and time.time_ns() >= watch.ends_ns:
                    return
        finally:
            with self._lock:
                watch.close()

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


class Elsewhere:
    """Another server, to which requests are forwarded."""

    def __init__(self, host: str) -> None:
        self._host = host

    def answer(self, method: str, target: str, media: str, body: bytes) -> Answer:
        """Return its answer; 500 if it does not answer in time, as without etcd."""
        link = http.client.HTTPConnection(self._host, timeout=_FORWARD_S)
        with contextlib.closing(link):
            try:
                link.request(method, target, body, {"Content-Type": media} if media else {})
                reply = link.getresponse()
                return reply.status, reply.read()
            except (OSError, http.client.HTTPException):
                return _no_etcd()

    def watch(self, target: str) -> Answer | Events:
        host, _, port = self._host.partition(":")
        link = socket.socket()
        link.settimeout(_FORWARD_S)
        try:
            link.connect((host, int(port)))
            # The answer to a request of HTTP/1.0 comes without chunks, and ends with its link.
            link.sendall(f"GET {target} HTTP/1.0\r\n\r\n".encode())
            head, _, rest = _until_head(link).partition(_END)
        except OSError:
            link.close()
            return _no_etcd()
        status = int(head.split()[1])
        events = _rest(link, rest)
        return events if status == 200 else (status, b"".join(events))


def _until_head(link: socket.socket) -> bytes:
    """Read the head of an answer, and maybe more. Raises OSError if none comes."""
    found = b""
    while _END not in found:
        data = link.recv(_CHUNK)
        if not data:
            raise OSError("the connection ended before an answer")
        found += data
    return found


def _rest(link: socket.socket, rest: bytes) -> Events:
    """Yield what comes on a connection after its head."""
    with contextlib.closing(link), contextlib.suppress(OSError):
        yield rest
        while True:
            ready, _, _ = select.select([link], [], [], _LOOKS_S)
            data = link.recv(_CHUNK) if ready else b""
            if ready and not data:
                return
            yield data


def _unknown(error: Unknown) -> Answer:
    words = f"{error}. The servers of kind kubernetes are a model"
    return 501, encoded(Refusal(501, "", words).status())


def _no_etcd() -> Answer:
    return 500, encoded(Refusal(500, "", "etcdserver: request timed out").status())


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
        if is_watch(self.command, urlsplit(self.path).query):
            self._watch()
        else:
            self._send(*self.source.answer(self.command, self.path, media, body))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _watch(self) -> None:
        found = self.source.watch(self.path)
        if isinstance(found, tuple):
            self._send(*found)
            return
        chunked = self.request_version != "HTTP/1.0"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.closing(found), contextlib.suppress(OSError):  # the client is gone
            for events in found:
                if events:
                    self.wfile.write(_chunk(events) if chunked else events)
                elif self._left():
                    self.close_connection = True
                    return
            if chunked:
                self.wfile.write(_chunk(b""))

    def _left(self) -> bool:
        """Return whether the client has closed its connection."""
        ready, _, _ = select.select([self.connection], [], [], 0)
        return bool(ready) and not self.connection.recv(1, socket.MSG_PEEK)

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


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def source_of(words: str) -> Source:
    """Return the source of answers: a file of objects, or another server by its URL."""
    if words.startswith("http://"):
        return Elsewhere(words.removeprefix("http://"))
    return Store(Path(words))


def server(address: str, port: int, source: Source) -> ThreadingHTTPServer:
    """Return a server that listens; its `serve_forever` answers."""
    handler = type("Handler", (_Handler,), {"source": source})
    return _Server((address, port), handler)


def main(words: list[str]) -> None:
    port, given, *addresses = words
    source = source_of(given)
    servers = [server(address, int(port), source) for address in addresses]
    # A log that is empty would not tell whether the server has crashed.
    print(f"serves on port {port} of {', '.join(addresses)}", file=sys.stderr, flush=True)
    for one in servers[1:]:
        threading.Thread(target=one.serve_forever, daemon=True).start()
    servers[0].serve_forever()
