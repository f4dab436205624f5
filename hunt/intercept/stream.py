"""What goes over a library's connection: bytes one way, and bytes the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fencepost.hunt.models.redis.resp import CONNECTION, Command, bytes_of
from fencepost.hunt.sim.network import LATER, Request, Tap
from fencepost.hunt.sim.world import Timer

if TYPE_CHECKING:
    from fencepost.hunt.intercept.sockets import Socket


class Talk(Request):
    """Commands that were sent at once, and their replies, on the way.

    A command that has to wait becomes a talk of its own: what was sent before it is answered, and
    what was sent after it is read once it is answered.
    """

    __slots__ = ("replies",)

    link: Socket
    command: tuple[Command, ...]

    @property
    def asked(self) -> Command:
        return self.command[0]

    def due(self) -> None:
        link = self.link
        if self.back:
            link.arrived(self)
        elif self.server.up and self.server.boots == self.boot:
            if link.session.waits or link.session.unread:
                link.session.unread.append(self)
            else:
                self._carry_out()
        elif self.server.up:
            # It was started anew, and knows nothing of this connection.
            link.reset()

    def _carry_out(self) -> None:
        session = self.link.session
        version = session.version
        self.replies: list[Any] = []
        data = b""
        for place, command in enumerate(self.command):
            reply = session.carry_out(self.server, command)
            if reply is LATER:
                self._wait(place)
                break
            self.replies.append(reply)
            data += bytes_of(command, reply, session.version or version)
        if self.replies:
            self.link.network.answer(self, data)

    def _wait(self, place: int) -> None:
        """The command at this place has to wait."""
        link, session = self.link, self.link.session
        cuts = self.command[:place], self.command[place : place + 1], self.command[place + 1 :]
        parts = [commands for commands in cuts if commands]
        self.command = parts[0]
        talks = [self, *(Talk(link, part, self.sent, self.boot) for part in parts[1:])]
        link.parted(self, talks)
        waiting = talks[1 if place else 0]
        session.waits = True
        session.unread += talks[talks.index(waiting) + 1 :]
        self.server.wait(waiting)
        if link.closed:
            self.server.left(link)

    def give(self, reply: Any) -> None:
        """Answer the one command that this is, after it had to wait."""
        link, session = self.link, self.link.session
        self.replies = [reply]
        link.network.answer(self, bytes_of(self.asked, reply, session.version))
        session.waits = False
        if session.unread:
            world = link.network.world
            world.at(world.now, Timer(self.server, lambda: read_on(link, self.boot)))

    def tell(self, tap: Tap, reply: Any) -> None:
        for command, answer in zip(self.command, self.replies, strict=True):
            if command[0] not in CONNECTION:
                tap.handled(self.link, command, answer)

    def miss(self, tap: Tap) -> None:
        for command in self.command:
            if command[0] not in CONNECTION:
                tap.lost(self.link, command)


def read_on(link: Socket, boot: int) -> None:
    """The server reads what has come while the connection waited."""
    session = link.session
    while session.unread and not session.waits and link.server.boots == boot:
        session.unread.pop(0)._carry_out()
