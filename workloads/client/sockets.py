"""Counts what a lock sends on connections of its own (steps.py), on a real machine and a simulated
one alike.

Connecting is a step, and each send, and the first look for an answer after one: in how many pieces
that comes differs from time to time. What a client of Redis says of itself once it is connected is
none: one version of a library says more than another.
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
    """The sockets of one client. A socket is whatever object stands for the connection."""

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
    """The name of the first command in what a client of Redis sends, in capitals."""
    words = data.split(None, 3)
    word = words[2] if len(words) > 2 and words[0].startswith(b"*") else b"".join(words[:1])
    return word.upper()


def count(sockets: Sockets, nodes: Mapping[str, tuple[str, int]]) -> None:
    """From now on count what this program's sockets do to these nodes, by their [host, port]."""
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
    """Where it connects to; nowhere that is known, for a socket that is none of the internet's."""
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
