"""Simulates connections, and messages that arrive late or never.

A connection behaves as in TCP: each message arrives once and in order, or the connection is broken.
Closing a connection does not withdraw what was sent on it: that may still arrive and be executed.
Links may be cut both ways or one; a message sent into a cut is lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from heapq import heappush
from typing import Any, Protocol

from fencepost.hunt.sim.clock import WallClock
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import NEVER, Node, World

LATENCY = 250_000
"""The latency of one way without faults, in ns."""
_SPREAD = 1_700


class Refusal(Exception):
    """An error reply of a server."""


class Later:
    """The result of a command that the server answers later, with `Request.give`."""


LATER = Later()


class Server(Node, ABC):
    """A node that answers requests.

    `boots`: how often it was restarted. `kept`: its data survive a crash. `port`: the port for
    libraries that bring their own connections. `duplex`: both sides speak on those at any time
    (hunt/intercept/duplex.py); a session answers on its `line`. `session_ends`: when it ended a
    session of each client (ns), by node; None if a session is no client's.
    """

    __slots__ = ("boots", "clock", "kept")

    port = 0
    duplex = False
    session_ends: dict[str, list[int]] | None = None

    def __init__(self, name: str, index: int) -> None:
        super().__init__(name, index)
        self.boots = 0
        self.clock = WallClock()
        self.kept = False

    @abstractmethod
    def handle(self, command: tuple[Any, ...]) -> Any:
        """Execute a command, and return the reply, a Refusal, or LATER."""

    @abstractmethod
    def wait(self, request: Request) -> None:
        """Take a request for which `handle` returned LATER, and answer it with `Request.give`."""

    def session(self) -> Session:
        """Return a decoder of the bytes on a new connection."""
        raise Unknown(f"{self.name} has no model of its connections")

    def left(self, link: Wire) -> None:
        """Note that a client has closed a connection on which it waited."""

    def settle(self) -> None:
        """Catch up with periodic work, according to the clock as it is now."""

    @abstractmethod
    def crash(self, power: bool) -> None:
        """Stop; if `power` is lost, all unsynced data is lost."""

    @abstractmethod
    def start(self) -> None:
        """Start again."""

    def forget(self) -> None:
        """Drop all references to the run, which has ended."""


class Line(Protocol):
    """The server's end of a duplex connection. `open`: neither side has closed it. `broken`:
    nothing passes."""

    client: Node
    open: bool

    @property
    def broken(self) -> bool: ...

    def say(self, data: bytes) -> None:
        """Send these bytes to the client."""

    def hang_up(self) -> None:
        """Close the connection after the last bytes on it."""


class Lasting(Protocol):
    """A connection with messages that wait for the end of faults."""

    client: Node

    def closed(self) -> None:
        """Tell the server that the client has closed the connection."""

    def recover(self) -> None:
        """Let them arrive."""


class Session(Protocol):
    """Decodes and encodes the bytes on one connection of a library. `over`: the server closes the
    connection after its last reply. `unasked`: the server sends on it without a request from these
    commands on. `line`: where it does so, and where a duplex server answers."""

    over: bool
    unasked: bool
    line: Line | None

    def commands(self, data: bytes) -> list[tuple[Any, ...]]:
        """Return the commands that these bytes complete."""

    def execute(self, server: Server, command: tuple[Any, ...]) -> Any:
        """Return the reply to one command, or LATER. Raises Unknown if the model lacks it."""

    def encoded(self, command: tuple[Any, ...], reply: Any) -> bytes:
        """Return the bytes of the reply to a command; none if the session answers on its line."""

    def is_about_data(self, command: tuple[Any, ...]) -> bool:
        """Whether the command concerns more than the connection itself."""


class Tap(Protocol):
    """Observes the network, for example to tell the story of a run."""

    def handled(self, link: Wire, command: tuple[Any, ...], reply: Any) -> None: ...
    def lost(self, link: Wire, command: tuple[Any, ...]) -> None: ...
    def refused(self, link: Wire) -> None:
        """Note that a connection could not be opened."""


class Wire(Protocol):
    """A connection between a client and a server; `command` is the last one sent."""

    network: Network
    client: Node
    server: Server
    command: tuple[Any, ...]
    ends: tuple[int, int]
    latency: int

    def arrived(self, request: Request) -> None:
        """Receive the reply to a request."""

    def moved(self, request: Request, late: Request) -> None:
        """Replace a request that is held back by `late`, which arrives instead."""

    def reset(self) -> None:
        """Note that the server has closed the connection."""


class Request:
    """One request and its reply, on the way to a server and back.

    `ready`: the reply has arrived. As an event it is the arrival of the request or of the reply.
    """

    __slots__ = ("answered", "arrives", "back", "boot", "command", "link", "node", "off",
                 "ready", "reply", "sent", "server")  # fmt: skip

    def __init__(self, link: Wire, command: tuple[Any, ...], sent: int, boot: int) -> None:
        server = link.server
        self.link = link
        self.server = server
        self.node: Node = server
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
        server = self.server
        if self.back:
            self.link.arrived(self)
        elif server.up and server.boots == self.boot:
            reply = server.handle(self.command)
            if reply is LATER:
                server.wait(self)
            else:
                self.link.network.answer(self, reply)

    @property
    def asked(self) -> tuple[Any, ...]:
        """Return the command whose reply comes later."""
        return self.command

    def give(self, reply: Any) -> None:
        """Send the reply that came later."""
        self.link.network.answer(self, reply)

    def later(self) -> Request:
        """Return a copy that arrives at another time."""
        made = type(self).__new__(type(self))
        for name in Request.__slots__:
            setattr(made, name, getattr(self, name))
        made.off = False
        return made

    def tell(self, tap: Tap, reply: Any) -> None:
        """Report to the tap that it was executed."""
        tap.handled(self.link, self.command, reply)

    def miss(self, tap: Tap) -> None:
        """Report to the tap that it or its reply was lost."""
        tap.lost(self.link, self.command)

    def fell_silent(self) -> None:
        """Note that it or its reply was lost."""

    @property
    def sent_again(self) -> Callable[[], None] | None:
        """Return what lets a lost one arrive after all, once the fault has ended; None: it never
        does."""
        return None


class Network:
    """Every link between a client and a server, by their indices.

    `silent`: the connections of libraries on which a message was lost, with the time; their client
    has not closed them since. TCP would send it again. `longest_silence`: of those that were
    closed, in ns.
    """

    def __init__(self, world: World, tap: Tap | None) -> None:
        self.world = world
        self.tap = tap
        self.requests_cut: set[tuple[int, int]] = set()
        self.replies_cut: set[tuple[int, int]] = set()
        # Open connections by server, in the order of their opening.
        self.open: defaultdict[int, dict[Wire, None]] = defaultdict(dict)
        self.duplexes: list[Lasting] = []
        self.silent: dict[object, int] = {}
        self.longest_silence = 0

    def speaks_no_more(self, link: object) -> None:
        """Note that a message was lost on a connection that stays open."""
        self.silent.setdefault(link, self.world.now)

    def speaks(self, link: object) -> None:
        """Note that a client has given a connection up, or that it works again."""
        since = self.silent.pop(link, None)
        if since is not None:
            self.longest_silence = max(self.longest_silence, self.world.now - since)

    @property
    def silence(self) -> int:
        """Return how long a client has waited on a silent connection at most (ns)."""
        return max([self.longest_silence, *(self.world.now - one for one in self.silent.values())])

    def latency(self, client: int, server: int) -> int:
        return LATENCY + _SPREAD * (3 * client + server)

    def answer(self, request: Request, reply: Any) -> None:
        """Send the reply to an executed request."""
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
            world = self.world
            request.arrives = world.now + link.latency
            world.sequence += 1  # as World.at, in the most frequent place
            heappush(world.queue, (request.arrives, world.sequence, request))

    def lost(self, request: Request) -> bool:
        """Whether the reply to a request is lost on its way back."""
        cut = request.link.ends in self.replies_cut
        if cut:
            request.fell_silent()
            if self.tap is not None:
                request.miss(self.tap)
        return cut

    def recover(self) -> None:
        """Let all messages arrive that TCP would send again now that all faults have ended."""
        for one in self.duplexes:
            one.recover()

    def died(self, client: Node) -> None:
        """Close the connections of a client's process as its system does."""
        for one in self.duplexes:
            if one.client is client:
                one.closed()

    def broken(self, server: Server) -> None:
        """Reset the connections to a stopped server, except across a cut."""
        for link in self.open.pop(server.index, {}):
            link.reset()
