"""A connection on which both sides speak at any time, as ZooKeeper's, and Redis' after SUBSCRIBE:
several requests are under way, and the server sends without a request.

TCP delivers the messages of each side in order. So messages after a late one are late as well, and
a message that arrives a second time is dropped. A message that is sent into a cut is sent again,
after 0.2 s and then after twice as long each time, until it passes (Linux' retransmission). A lost
one, and all after it, arrive when the fault ends that lost it: with all faults of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencepost.hunt.intercept.stream import Command, Stream
from fencepost.hunt.sim.network import Request, Tap
from fencepost.hunt.sim.world import MS, Timer

_AGAIN = 200 * MS


class Up(Request):
    """Commands on their way to the server."""

    __slots__ = ("duplex", "number", "results")

    link: Stream
    command: tuple[Command, ...]

    def __init__(self, duplex: Duplex, commands: tuple[Command, ...], number: int) -> None:
        link = duplex.link
        super().__init__(link, commands, link.network.world.now, link.server.boots)
        self.duplex = duplex
        self.number = number
        self.results: list[Any] = []

    def due(self) -> None:
        self.duplex.arrived_up(self)

    def later(self) -> Request:
        made = super().later()
        assert isinstance(made, Up)
        made.duplex, made.number, made.results = self.duplex, self.number, []
        return made

    def tell(self, tap: Tap, reply: Any) -> None:
        session = self.link.session
        for command, result in zip(self.command, self.results, strict=False):
            if session.is_about_data(command):
                tap.handled(self.link, command, result)

    @property
    def sent_again(self) -> Callable[[], None]:
        return self.duplex.recover

    def miss(self, tap: Tap) -> None:
        for command in self.command:
            if self.link.session.is_about_data(command):
                tap.lost(self.link, command)


class Down(Request):
    """Bytes on their way to the client. `reply` None: the server has closed the connection.
    `about`: the command that they answer; None if they come later, or without one."""

    __slots__ = ("about", "duplex", "number")

    def __init__(
        self, duplex: Duplex, data: bytes | None, number: int, about: Command | None = None
    ) -> None:
        link = duplex.link
        super().__init__(link, (), link.network.world.now, link.server.boots)
        self.duplex = duplex
        self.about = about
        self.node = link.client
        self.back = True
        self.reply = data
        self.number = number

    def due(self) -> None:
        self.link.arrived(self)

    def later(self) -> Request:
        made = super().later()
        assert isinstance(made, Down)
        made.duplex, made.number, made.about = self.duplex, self.number, self.about
        return made

    @property
    def sent_again(self) -> Callable[[], None]:
        return self.duplex.recover


class Duplex:
    """The two directions of one connection, and the server's end of it (network.Line)."""

    def __init__(self, link: Stream) -> None:
        self.link = link
        self.client = link.client
        self.open = True
        self._boots = link.server.boots
        self._sent_up = self._sent_down = 0
        self._next_up = self._next_down = 1
        # Messages that have arrived before an earlier one.
        self._early_up: dict[int, Up] = {}
        self._early_down: dict[int, Down] = {}
        self._closed_after: int | None = None
        self._executing: Command | None = None
        # Messages under way, by direction and number, and those that wait for the end of a cut.
        self._flying: dict[tuple[bool, int], Up | Down] = {}
        self._stalled: dict[object, Callable[[], None]] = {}
        link.network.duplexes.append(self)

    def _carry(
        self, cuts: set[tuple[int, int]], go: Callable[[], None], wait: int = _AGAIN
    ) -> bool:
        """Let a message go, or try again later if its link is cut; return whether it went."""
        if self.link.ends not in cuts:
            go()
            return True
        world = self.link.network.world
        this = object()
        self._stalled[this] = go

        def again() -> None:
            if self._stalled.pop(this, None) is not None:
                self._carry(cuts, go, 2 * wait)

        world.at(world.now + wait, Timer(world.nowhere, again))
        return False

    @property
    def broken(self) -> bool:
        """Whether nothing passes: a message was lost, the link is cut, or the server crashed."""
        network, server = self.link.network, self.link.server
        if not server.up or server.boots != self._boots:
            return True
        cut = self.link.ends in network.requests_cut or self.link.ends in network.replies_cut
        return cut or any(one.off for one in self._flying.values())

    def moved(self, request: Request, late: Request) -> None:
        """Replace a message that is held back by `late`."""
        for key, one in self._flying.items():
            if one is request:
                self._flying[key] = late  # type: ignore[assignment]  # a copy
                return

    def has_lost(self, request: Request) -> bool:
        """Whether this message was lost, and is not merely held back."""
        return any(one is request and one.off for one in self._flying.values())

    def ended(self) -> None:
        """End the connection at the server as well: TCP has given it up."""
        self._stalled.clear()
        if self.open and self.link.server.up and self.link.server.boots == self._boots:
            self.open = False
            self.link.server.left(self.link)

    def recover(self) -> None:
        """Let all messages arrive that were lost or wait: the network is right again."""
        stalled, self._stalled = self._stalled, {}
        for go in stalled.values():
            go()
        for key, one in list(self._flying.items()):
            if one.off:
                again = self._flying[key] = one.later()  # type: ignore[assignment]  # a copy
                self._fly(again)

    def _fly(self, message: Request) -> None:
        world = self.link.network.world
        message.arrives = world.now + self.link.latency
        world.at(message.arrives, message)
        if isinstance(message, Down):
            self.link.sent_back(message)

    # To the server.

    def send(self, commands: tuple[Command, ...]) -> None:
        network = self.link.network
        self._sent_up += 1
        up = self._flying[True, self._sent_up] = Up(self, commands, self._sent_up)
        if not self._carry(network.requests_cut, lambda: self._fly(up)) and network.tap is not None:
            up.miss(network.tap)

    def arrived_up(self, up: Up) -> None:
        self._flying.pop((True, up.number), None)
        server = self.link.server
        if not server.up:
            return
        if server.boots != self._boots:
            self.link.reset()  # the server has restarted, and does not know this connection
            return
        if up.number < self._next_up:
            return  # for the second time
        self._early_up[up.number] = up
        while (ready := self._early_up.pop(self._next_up, None)) is not None:
            self._next_up += 1
            self._execute(ready)
        self._left_if_read()

    def _execute(self, up: Up) -> None:
        session = self.link.session
        for command in up.command:
            if not self.open:
                break
            self._executing = command
            reply = session.execute(self.link.server, command)
            up.results.append(reply)
            if data := session.encoded(command, reply):
                self.say(data)
            self._executing = None
            if session.over:
                self.hang_up()
        tap = self.link.network.tap
        if tap is not None:
            up.tell(tap, None)

    def closed(self) -> None:
        """Tell the server that the client has closed the connection, after its last request."""
        link, world = self.link, self.link.network.world
        after = self._sent_up

        def arrives() -> None:
            if link.server.boots == self._boots:
                self._closed_after = after
                self._left_if_read()

        def go() -> None:
            world.at(world.now + link.latency, Timer(link.server, arrives))

        self._carry(link.network.requests_cut, go)

    def _left_if_read(self) -> None:
        if self.open and self._closed_after is not None and self._next_up > self._closed_after:
            self.open = False
            self.link.server.left(self.link)

    # To the client.

    def say(self, data: bytes) -> None:
        """Send these bytes to the client."""
        self._send_down(data)

    def hang_up(self) -> None:
        """Close the connection after the last bytes on it; read no more from it."""
        if self.open:
            self.open = False
            self._send_down(None)

    def _send_down(self, data: bytes | None) -> None:
        self._sent_down += 1
        down = self._flying[False, self._sent_down] = Down(
            self, data, self._sent_down, self._executing
        )
        self._carry(self.link.network.replies_cut, lambda: self._fly(down))

    def take(self, down: Down) -> tuple[bytes, bool]:
        """Return the bytes that can be read because of this arrival, and whether the connection
        ends after them."""
        self._flying.pop((False, down.number), None)
        found, ends = b"", False
        if down.number >= self._next_down:
            self._early_down[down.number] = down
        while (ready := self._early_down.pop(self._next_down, None)) is not None:
            self._next_down += 1
            if ready.reply is None:
                ends = True
            else:
                found += ready.reply
        return found, ends
