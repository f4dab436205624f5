"""A TCP proxy that can hold back bytes, and reset its connections."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading


class Proxy:
    """Forwards connections on a port of loopback to another one. `way`: forward, hold or reset."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._way = "forward"
        self._changed = threading.Condition()
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def set(self, way: str) -> None:
        with self._changed:
            self._way = way
            ends = list(self._ends)
            self._changed.notify_all()
        if way == "reset":
            for end in ends:
                _reset(end)

    def close(self) -> None:
        self._listener.close()
        self.set("reset")

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._way == "reset":
                    _reset(near)
                    continue
                far = socket.create_connection(("127.0.0.1", self._target))
                with self._changed:
                    self._ends += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                with self._changed:
                    self._changed.wait_for(lambda: self._way != "hold")
                sink.sendall(data)


def _reset(end: socket.socket) -> None:
    """Close a connection so that its other end gets a reset, and a waiting thread wakes up."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RD)
    end.close()
