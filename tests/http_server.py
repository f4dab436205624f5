"""An HTTP server on loopback that records its requests, and a proxy in front of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fencepost.node.httpproxy import Fault, Proxy, Tally


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, self.headers.get("Content-Type"), body))
        self.send_response(201)
        self.send_header("X-Own", "yes")
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"done")

    do_GET = do_PUT = _answer

    def log_message(self, format, *arguments):
        pass


class Recording(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen = []


@contextmanager
def serving(server) -> Iterator[int]:
    """Serve until the end; yield the port."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def proxy(kind, port, file, clients=("127.0.0.1",), time_s=0.0):
    """Return a proxy in front of the server on this port."""
    fault = Fault(kind, frozenset(clients), ("127.0.0.1", port), time_s)
    return Proxy("127.0.0.1", fault, Tally(file))
