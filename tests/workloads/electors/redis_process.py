"""A Redis server on this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress

import pytest


@contextmanager
def redis_server(folder):
    """Start one; give its port and its pid. Skip the test without the program."""
    program = shutil.which("redis-server") or pytest.skip("needs redis-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--port", str(port), "--dir", str(folder), "--save", "", "--bind", "127.0.0.1"]
    server = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert server.poll() is None, "redis-server has ended"
            time.sleep(0.02)
        yield port, server.pid
    finally:
        server.kill()
        server.wait()
