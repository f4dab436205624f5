"""The connections of a program that pass a gate (gate.py), from its servers' addresses on loopback
to the servers themselves.

What ends on one side ends on the other. Between them whole commands and whole replies are known;
bytes that no server of Redis would understand pass as they are.
"""

from __future__ import annotations

import select
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from fencepost.workloads.client.frames import QUIET, cut, name_of

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends RST."""
_OPEN_S = 2.0
_CHUNK = 1 << 16
_PUSH = b">"
"""The first byte of a message that answers no command (RESP3)."""


class Link:
    """A connection: of the program (`down`), and to the server (`up`). `owed`: the numbers of the
    commands without a reply. `unsent`: bytes that wait for the connection. `passing`: replies that
    came together are being passed on."""

    def __init__(self, down: socket.socket, up: socket.socket, server: int, opaque: bool) -> None:
        self.down, self.up = down, up
        self.server = server
        self.opaque = opaque
        self.open = self.passing = False
        self.asks = self.answers = self.unsent = b""
        self.owed: deque[int] = deque()

    @property
    def port(self) -> int:
        """The local port from which the server is asked."""
        return int(self.up.getsockname()[1])

    def await_open(self) -> None:
        """Wait until it is connected, or a while."""
        select.select([], [self.up], [], _OPEN_S)


@dataclass(frozen=True)
class Request:
    """A command of the program on a connection; no bytes: it has closed it. `number`: 0 if it is
    no step of an op."""

    link: Link
    data: bytes
    number: int


class Relay:
    """All connections. `asked`: the requests that have not been sent yet. `numbered(server)` gives
    a command its number. `answered(number, pass_on)` is called when its reply has come, which
    `pass_on` sends to the program."""

    def __init__(
        self,
        numbered: Callable[[int], int],
        answered: Callable[[int, Callable[[], None]], object],
    ) -> None:
        self.poll = select.poll()
        self.asked: list[Request] = []
        self._numbered, self._answered = numbered, answered
        self._calls: dict[int, Callable[[], None]] = {}
        self._links: set[Link] = set()

    def listen(
        self, names: Sequence[str], addresses: Mapping[str, Sequence[object]], opaque: str
    ) -> dict[str, list[object]]:
        """Listen for each server; return the addresses for the program."""
        found: dict[str, list[object]] = {}
        for place, name in enumerate(names):
            host, port = addresses[name]
            family, *_, there = socket.getaddrinfo(str(host), int(str(port)), type=_STREAM)[0]
            listener = socket.create_server(("127.0.0.1", 0))
            found[name] = list(listener.getsockname())

            def accept(
                listener: socket.socket = listener, family: int = family,
                there: tuple[object, ...] = there, place: int = place, name: str = name,
            ) -> None:  # fmt: skip
                up = socket.socket(family, _STREAM)
                self._accept(Link(listener.accept()[0], up, place, name == opaque), there)

            self._watch(listener, accept)
        return found

    def _accept(self, link: Link, there: tuple[object, ...]) -> None:
        for one in (link.down, link.up):
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.up.connect_ex(there)
        self._links.add(link)
        self._watch(link.down, lambda: self._from_program(link))
        self._watch(link.up, lambda: self._from_server(link), select.POLLIN | select.POLLOUT)

    def awaited(self) -> list[int]:
        """Return the sockets on which servers owe replies. Those that come after others which have
        not been passed on yet must wait."""
        links = (link for link in self._links if link.open and link.owed and not link.passing)
        return [link.up.fileno() for link in links]

    def take(self, fd: int) -> None:
        """Take the input of a socket."""
        if fd in self._calls:
            self._calls[fd]()

    def send(self, request: Request) -> None:
        """Send the server a command, or the end of the connection."""
        if not request.data:
            self._close(request.link)
            return
        request.link.unsent += request.data
        if request.link.open:
            self._flush(request.link)

    def _flush(self, link: Link) -> None:
        try:
            link.unsent = link.unsent[link.up.send(link.unsent) :] if link.unsent else b""
        except BlockingIOError:
            return  # its end is seen, or it is sent with the next one
        except OSError:
            self._close(link, reset=True)

    def _from_program(self, link: Link) -> None:
        try:
            data = link.down.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if link.opaque or not data:
            if not data:
                self._forget(link.down)
            self.asked.append(Request(link, data, 0))
            return
        commands, link.asks = cut(link.asks + data)
        for command in commands:
            name = name_of(command)
            request = 0 if not name or name in QUIET else self._numbered(link.server)
            if name:
                link.owed.append(request)
            self.asked.append(Request(link, command, request))

    def _from_server(self, link: Link) -> None:
        if not link.open:
            if link.up.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self._close(link, reset=True)
                return
            link.open = True
            self.poll.modify(link.up, select.POLLIN)
            self._flush(link)
            return
        try:
            data = link.up.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self._close(link, reset=True)
            return
        if not data:
            self._close(link)
            return
        if link.opaque:
            self._say(link, data)
            return
        replies, link.answers = cut(link.answers + data)
        link.passing = True
        for reply in replies:
            if reply[:1] != _PUSH and link.owed:
                self._answered(link.owed.popleft(), partial(self._say, link, reply))
            else:
                self._say(link, reply)
        link.passing = False

    def _say(self, link: Link, data: bytes) -> None:
        with suppress(OSError):  # its end is seen when it is read
            link.down.sendall(data)

    def _close(self, link: Link, reset: bool = False) -> None:
        self._links.discard(link)
        for one in (link.down, link.up):
            self._forget(one)
            if reset:
                with suppress(OSError):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            one.close()

    def _forget(self, sock: socket.socket) -> None:
        if self._calls.pop(sock.fileno(), None) is not None:
            self.poll.unregister(sock)

    def _watch(
        self, sock: socket.socket, call: Callable[[], None], events: int = select.POLLIN
    ) -> None:
        self._calls[sock.fileno()] = call
        self.poll.register(sock, events)


_STREAM = socket.SOCK_STREAM
