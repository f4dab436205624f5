"""A real connection of a client to a model of a server.

The bytes are real, and the model answers them (hunt/models). Between the two, each command and each
reply is an event, which a fault may hold back or lose. As in TCP, messages of one direction arrive
in order: a message that is held back holds back those behind it, and after a lost one nothing
arrives. A connection with a lost message is reset later, as TCP gives up.

A connection on which the server sends unasked is a duplex, as in the simulation
(hunt/intercept/duplex.py): each part that the server sends is a message of its own.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from fencepost.hunt.intercept.duplex import Down, Duplex, Up
from fencepost.hunt.intercept.stream import Talk
from fencepost.hunt.live.world import RealWorld
from fencepost.hunt.sim.network import Network, Request, Server, Session, Wire
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import Node, Timer

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends RST."""
LATENCY_NS, _SPREAD_NS = 8_000, 500
_TLS = 0x16
"""The first byte of a TLS handshake."""


class Eyes(Protocol):
    """Watches sockets for the run. `gives_up_ns`: when TCP gives up after a lost message."""

    gives_up_ns: int

    def unwatch(self, sock: socket.socket) -> None: ...


class Sees(Protocol):
    """Observes the commands and replies of the connections."""

    def sends(self, link: Wire, command: tuple[Any, ...]) -> None: ...
    def arrives(self, link: Wire, command: tuple[Any, ...]) -> None: ...


class RealNetwork(Network):
    """The connections of a run. `sees`: their observer, if any."""

    sees: Sees | None = None

    def latency(self, client: int, server: int) -> int:
        """Return less than the time that a message really takes, which does not count."""
        return LATENCY_NS + client * _SPREAD_NS + server

    def answer(self, request: Request, reply: Any) -> None:
        before = request.answered
        super().answer(request, reply)
        link = request.link
        if before or not isinstance(link, Connection):
            return
        if request.back:
            link.replies.waiting.append(request)
        else:
            link.lose(link.replies)

    def recover(self) -> None:
        """Reset connections that lost messages: all faults have ended."""
        for links in list(self.open.values()):
            for link in list(links):
                if isinstance(link, Connection) and link.lossy:
                    link.reset()
        super().recover()


class Way:
    """The messages of one direction. `here`: those that have arrived; `broken`: one was lost."""

    __slots__ = ("broken", "here", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Request] = deque()
        self.here: set[int] = set()
        self.broken = False

    def arrive(self, message: Request) -> list[Request]:
        """Take a message; return those that can be read now."""
        self.here.add(id(message))
        found = []
        while self.waiting and id(self.waiting[0]) in self.here and not self.broken:
            found.append(self.waiting.popleft())
            self.here.discard(id(found[-1]))
        return found

    def replace(self, message: Request, late: Request) -> None:
        self.waiting = deque(late if one is message else one for one in self.waiting)


class Command(Talk):
    """One command and its reply, under way on a real connection."""

    __slots__ = ()
    link: Connection

    def due(self) -> None:
        if self.back:
            self.link.arrived(self)
        else:
            for one in self.link.requests.arrive(self):
                assert isinstance(one, Command)
                one.execute()

    def execute(self) -> None:
        """Let the server execute it."""
        super().due()


class Connection:
    """A connection (Stream, hunt/intercept/stream.py). `poke(wakes)` is called before its client
    gets something; `wakes`: it surely waits for this."""

    def __init__(
        self, eyes: Eyes, world: RealWorld, network: RealNetwork, client: Node, server: Server,
        sock: socket.socket, poke: Callable[[bool], None],
    ) -> None:  # fmt: skip
        self._eyes = eyes
        self._poke = poke
        self.network: Network = network
        self._seen_by = network
        self._world = world
        self.client = client
        self.server = server
        self._sock = sock
        self.session: Session = server.session()
        self.ends = (client.index, server.index)
        self.latency = network.latency(client.index, server.index)
        self.command: tuple[Any, ...] = ()
        self.waits = self.closed = False
        self.unread: list[Talk] = []
        self.requests, self.replies = Way(), Way()
        self._boot = server.boots
        self._duplex: Duplex | None = None
        network.open[server.index][self] = None
        if server.duplex:
            self._listen()

    def _listen(self) -> None:
        """Let the server send at any time from now on."""
        self._duplex = self.session.line = Duplex(self)

    @property
    def lossy(self) -> bool:
        return self.requests.broken or self.replies.broken

    def readable(self) -> None:
        """Read the client's bytes. Raises Unknown if the model lacks it."""
        self._world.stir()
        try:
            data = self._sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        if data[0] == _TLS:
            raise Unknown(f"it speaks TLS to {self.server.name}, and simulated servers have none")
        for command in self.session.commands(data):
            self._take(command)

    def is_about_data(self, message: Request) -> bool:
        """Whether a message concerns more than the connection itself."""
        if not isinstance(message, Down):
            return self.session.is_about_data(message.command[0])
        if message.reply is None:
            return False
        return message.about is None or self.session.is_about_data(message.about)

    def _take(self, command: tuple[Any, ...]) -> None:
        network, world = self.network, self.network.world
        self.command = (command,)
        if self.session.unasked and self._duplex is None:
            if self.requests.waiting or self.replies.waiting:
                raise Unknown(
                    "it subscribes on a connection before it has the answers to earlier requests"
                )
            self._listen()
        if self._duplex is not None:
            self._duplex.send((command,))
            return
        if (sees := self._seen_by.sees) is not None and self.session.is_about_data(command):
            sees.sends(self, command)
        talk = Command(self, (command,), world.now, self._boot)
        if self.requests.broken or self.ends in network.requests_cut:
            if network.tap is not None:
                talk.miss(network.tap)
            self.lose(self.requests)
        else:
            self.requests.waiting.append(talk)
            world.at(world.now + self.latency, talk)

    def arrived(self, request: Request) -> None:
        if self._duplex is not None and isinstance(request, Down):
            data, ends = self._duplex.take(request)
            if data:
                self._write(data)
            if ends:
                self.close()
            return
        for one in self.replies.arrive(request):
            if (sees := self._seen_by.sees) is not None:
                sees.arrives(self, one.command[0])
            self._write(one.reply)
        if self.session.over and not self.replies.waiting:
            self.close()

    def _write(self, data: bytes) -> None:
        if not self.closed:
            self._world.stir()
            self._poke(True)
            with suppress(OSError):
                self._sock.sendall(data)

    def sent_back(self, down: Any) -> None:
        """Do nothing: bytes count once they arrive."""

    def parted(self, whole: Talk, parts: list[Talk]) -> None:
        """Do nothing: each command is a talk of its own."""

    def moved(self, request: Request, late: Request) -> None:
        if self._duplex is not None and isinstance(request, Up | Down):
            self._duplex.moved(request, late)
        else:
            self._way(request).replace(request, late)

    def lost(self, request: Request) -> None:
        """Note that a fault has lost this message, if it has not replaced it."""
        if self._duplex is not None and isinstance(request, Up | Down):
            if self._duplex.has_lost(request):
                self._give_up_later()
            return
        way = self._way(request)
        if request in way.waiting:
            self.lose(way)

    def _way(self, request: Request) -> Way:
        return self.replies if request.back else self.requests

    def lose(self, way: Way) -> None:
        """Let nothing more arrive this way, and reset the connection later."""
        if not way.broken:
            way.broken = True
            self._give_up_later()

    def _give_up_later(self) -> None:
        world = self.network.world
        world.at(world.now + self._eyes.gives_up_ns, Timer(world.nowhere, self._give_up))

    def _give_up(self) -> None:
        """Reset the connection, unless all lost messages have been sent again."""
        if self._duplex is None or self._duplex.broken:
            self.reset()

    def reset(self) -> None:
        """Close the connection with RST, except across a cut."""
        if self.closed:
            return
        if self._duplex is not None:
            if self.ends in self.network.replies_cut or self.ends in self.network.requests_cut:
                self._give_up_later()
                return
            self._duplex.ended()
        elif self.ends in self.network.replies_cut:
            self.lose(self.replies)
            return
        with suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.close()

    def close(self) -> None:
        """Close the socket; commands that were sent before may still arrive."""
        if self.closed:
            return
        self.closed = True
        self._world.stir()
        self._poke(False)
        self.network.open.get(self.server.index, {}).pop(self, None)
        if self.waits:
            self.server.left(self)
        if self._duplex is not None:
            self._duplex.closed()
        self._eyes.unwatch(self._sock)
        self._sock.close()
