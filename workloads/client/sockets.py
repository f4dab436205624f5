"""Counts the messages of a lock on its own connections (steps.py), real or simulated.

Connecting is a step, and each send, and the first receive after one, because the number of pieces
of an answer varies. The greeting of a Redis client after it connects is not a step, because it
differs between versions of the library.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakSet

from fencepost.workloads.client.steps import Steps

_GREETINGS = (b"HELLO", b"AUTH", b"CLIENT", b"SELECT")
_CALLS = ("connect", "connect_ex", "send", "sendall", "recv", "recv_into")


class Sockets:
    """The sockets of one client. A socket is whatever object represents the connection."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._unanswered: WeakSet[Any] = WeakSet()

    def connect(self, socket: Any, node: str, do: Callable[[], Any]) -> Any:
        return self._steps.step("connect", do, node, (), socket)

    def send(self, socket: Any, node: str, data: bytes, do: Callable[[], Any]) -> Any:
        name = first_word(data)
        if name in _GREETINGS:
            return do()
        self._unanswered.add(socket)
        return self._steps.step("send", do, node, (name.decode(errors="replace"),), socket)

    def receive(self, socket: Any, node: str, do: Callable[[], Any]) -> Any:
        if socket not in self._unanswered:
            return do()
        self._unanswered.discard(socket)
        return self._steps.step("receive", do, node)


def first_word(data: bytes) -> bytes:
    """Return the name of the first command that a Redis client sends, in capitals."""
    words = data.split(None, 3)
    word = words[2] if len(words) > 2 and words[0].startswith(b"*") else b"".join(words[:1])
    return word.upper()


def count(sockets: Sockets, nodes: Mapping[str, tuple[str, int]]) -> None:
    """From now on count the messages of this program's sockets to these nodes, by [host, port]."""
    known = {
        (str(found[4][0]), port): node
        for node, (host, port) in nodes.items()
        for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    }
    for name in _CALLS:
        setattr(socket.socket, name, _counted(sockets, known, name))


def _counted(
    sockets: Sockets, nodes: Mapping[tuple[str, int], str], name: str
) -> Callable[..., Any]:
    real = getattr(socket.socket, name)

    def call(self: socket.socket, *args: Any, **more: Any) -> Any:
        def do() -> Any:
            return real(self, *args, **more)

        node = nodes.get(_address(self, args) if name.startswith("connect") else _peer(self))
        if node is None:
            return do()
        if name.startswith("connect"):
            return sockets.connect(self, node, do)
        if name.startswith("send"):
            return sockets.send(self, node, bytes(args[0]), do)
        return sockets.receive(self, node, do)

    return call


def _address(self: socket.socket, args: tuple[Any, ...]) -> tuple[str, int]:
    """Return the address that it connects to; none for a socket other than an internet one."""
    if self.family not in (socket.AF_INET, socket.AF_INET6):
        return "", 0
    host, port = args[0][:2]
    with_names = socket.getaddrinfo(host, port, self.family, socket.SOCK_STREAM)
    return str(with_names[0][4][0]), port


def _peer(self: socket.socket) -> tuple[str, int]:
    try:
        host, port = self.getpeername()[:2]
    except (OSError, ValueError):
        return "", 0
    return str(host), port
