"""What lies between clients and servers: connections, and messages that may come late or never.

A connection is TCP's: messages arrive in order and once, or the connection is of no use any more.
Who closes a connection does not take back what was sent on it: that may still arrive, and be
carried out. Links may be cut one way or both; what is sent into a cut is lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from typing import Any, Protocol

from fencepost.hunt.sim.clock import WallClock
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import NEVER, Node, World

LATENCY = 250_000
"""One way, in ns, where nothing disturbs it."""
_SPREAD = 1_700


class Refusal(Exception):
    """A server answers with an error."""


class Later:
    """What a server gives as its answer where that comes later, by `Request.give`."""


LATER = Later()


class Server(Node, ABC):
    """A node that answers requests. `boots`: how often it was started anew; `kept`: its data
    outlive a crash. `port`: where libraries that bring their own connections reach it."""

    __slots__ = ("boots", "clock", "kept")

    port = 0

    def __init__(self, name: str, index: int) -> None:
        super().__init__(name, index)
        self.boots = 0
        self.clock = WallClock()
        self.kept = False

    @abstractmethod
    def handle(self, command: tuple[Any, ...]) -> Any:
        """Carry out a command and return the reply, a Refusal, or LATER."""

    @abstractmethod
    def wait(self, request: Request) -> None:
        """Answer a request, whose reply was to come later, by `Request.give`."""

    def session(self) -> Session:
        """What the server makes of the bytes on a new connection."""
        raise Unknown(f"{self.name} has no model of its connections")

    def left(self, link: Wire) -> None:
        """Whoever waited for an answer on this connection has closed it."""

    def settle(self) -> None:
        """Do what would have been done by now, by its clock as it is."""

    @abstractmethod
    def crash(self, power: bool) -> None:
        """Go down; with `power`, all that was not synced is lost."""

    @abstractmethod
    def start(self) -> None:
        """Come up again."""

    def forget(self) -> None:
        """The run is over: let go of whatever refers back to it."""


class Session(Protocol):
    """The bytes on one connection of a library, as the server reads and writes them."""

    def commands(self, data: bytes) -> list[tuple[Any, ...]]:
        """The commands that are complete with these bytes."""

    def carry_out(self, server: Server, command: tuple[Any, ...]) -> Any:
        """The reply to one command, or LATER. Raises Unknown for one that the model lacks."""

    def encoded(self, command: tuple[Any, ...], reply: Any) -> bytes:
        """The reply to a command, as it is sent."""

    def is_about_data(self, command: tuple[Any, ...]) -> bool:
        """Whether the command is about more than the connection itself."""


class Tap(Protocol):
    """Who listens to what happens on the network, to tell it to a person."""

    def handled(self, link: Wire, command: tuple[Any, ...], reply: Any) -> None: ...
    def lost(self, link: Wire, command: tuple[Any, ...]) -> None: ...
    def refused(self, link: Wire) -> None:
        """A connection could not be opened."""


class Wire(Protocol):
    """A connection between a client and a server, whatever is sent on it. `command`: what was sent
    last."""

    network: Network
    client: Node
    server: Server
    command: tuple[Any, ...]
    ends: tuple[int, int]
    latency: int

    def arrived(self, request: Request) -> None:
        """The reply to a request is here."""

    def moved(self, request: Request, late: Request) -> None:
        """A request or its reply is held back: it will be `late` that arrives."""

    def reset(self) -> None:
        """The server has gone, and says so."""


class Request:
    """One request and its reply, on the way to a server and back.

    `ready`: the reply has arrived. As an event it is the arrival of whichever is under way.
    """

    __slots__ = ("answered", "arrives", "back", "boot", "command", "link", "node", "off",
                 "ready", "reply", "sent", "server")  # fmt: skip

    def __init__(self, link: Wire, command: tuple[Any, ...], sent: int, boot: int) -> None:
        self.link = link
        self.server = link.server
        self.node: Node = link.server
        self.command = command
        self.sent = sent
        self.boot = boot
        self.arrives = NEVER
        self.reply: Any = None
        self.back = False
        self.answered = False
        self.ready = False
        self.off = False

    def due(self) -> None:
        if self.back:
            self.link.arrived(self)
        elif self.server.up and self.server.boots == self.boot:
            reply = self.server.handle(self.command)
            if reply is LATER:
                self.server.wait(self)
            else:
                self.link.network.answer(self, reply)

    @property
    def asked(self) -> tuple[Any, ...]:
        """The command that a server lets wait."""
        return self.command

    def give(self, reply: Any) -> None:
        """Answer it, after it had to wait."""
        self.link.network.answer(self, reply)

    def later(self) -> Request:
        """The same, to arrive at another time than this one."""
        made = type(self).__new__(type(self))
        for name in Request.__slots__:
            setattr(made, name, getattr(self, name))
        made.off = False
        return made

    def tell(self, tap: Tap, reply: Any) -> None:
        """It was carried out."""
        tap.handled(self.link, self.command, reply)

    def miss(self, tap: Tap) -> None:
        """It was lost on its way, or its reply."""
        tap.lost(self.link, self.command)


class Network:
    """Every link between a client and a server, by the indices of both."""

    def __init__(self, world: World, tap: Tap | None) -> None:
        self.world = world
        self.tap = tap
        self.requests_cut: set[tuple[int, int]] = set()
        self.replies_cut: set[tuple[int, int]] = set()
        # Connections that are open, by server, in the order in which they were opened.
        self.open: defaultdict[int, dict[Wire, None]] = defaultdict(dict)

    def latency(self, client: int, server: int) -> int:
        return LATENCY + _SPREAD * (3 * client + server)

    def answer(self, request: Request, reply: Any) -> None:
        """Send the reply to a request that was carried out."""
        if request.answered:
            return
        link = request.link
        request.answered = True
        request.reply = reply
        if self.tap is not None:
            request.tell(self.tap, reply)
        if not (self.replies_cut and self.lost(request)):
            request.back = True
            request.node = link.client
            request.arrives = self.world.now + link.latency
            self.world.at(request.arrives, request)

    def lost(self, request: Request) -> bool:
        """Whether the reply to a request is lost on its way back."""
        cut = request.link.ends in self.replies_cut
        if cut and self.tap is not None:
            request.miss(self.tap)
        return cut

    def broken(self, server: Server) -> None:
        """A server has gone: whoever waits for its answer hears of it at once, unless cut off."""
        for link in self.open.pop(server.index, {}):
            link.reset()
