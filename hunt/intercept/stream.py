"""Commands and replies of a library's connection, as bytes."""

from __future__ import annotations

from typing import Any, Protocol

from fencepost.hunt.sim.network import LATER, Request, Session, Tap, Wire
from fencepost.hunt.sim.world import Timer

Command = tuple[Any, ...]


class Stream(Wire, Protocol):
    """A connection of a library.

    `waits`: a command on it blocks; commands that arrive meanwhile are `unread`.
    """

    session: Session
    waits: bool
    unread: list[Talk]
    closed: bool

    def sent_back(self, down: Any) -> None:
        """Note that the server has sent bytes on a duplex connection (duplex.py)."""

    def parted(self, whole: Talk, parts: list[Talk]) -> None:
        """Replace commands that were sent together by the parts that are answered separately."""


class Talk(Request):
    """Commands that were sent together, and their replies, under way.

    A blocking command becomes a talk of its own: the commands before it are answered, and those
    after it are read once it is answered.
    """

    __slots__ = ("replies",)

    link: Stream
    command: tuple[Command, ...]

    @property
    def asked(self) -> Command:
        return self.command[0]

    def due(self) -> None:
        link = self.link
        if self.back:
            link.arrived(self)
        elif self.server.up and self.server.boots == self.boot:
            if link.waits or link.unread:
                link.unread.append(self)
            elif not link.session.over:
                self._execute()
        elif self.server.up:
            # The server has restarted, and does not know this connection.
            link.reset()

    def _execute(self) -> None:
        session = self.link.session
        self.replies: list[Any] = []
        data = b""
        for place, command in enumerate(self.command):
            reply = session.execute(self.server, command)
            if reply is LATER:
                self._wait(place)
                break
            self.replies.append(reply)
            data += session.encoded(command, reply)
            if session.over:
                self.command = self.command[: place + 1]
                break
        if self.replies:
            self.link.network.answer(self, data)

    def _wait(self, place: int) -> None:
        """Split the talk at this command, which blocks."""
        link = self.link
        cuts = self.command[:place], self.command[place : place + 1], self.command[place + 1 :]
        parts = [commands for commands in cuts if commands]
        self.command = parts[0]
        talks = [self, *(Talk(link, part, self.sent, self.boot) for part in parts[1:])]
        link.parted(self, talks)
        waiting = talks[1 if place else 0]
        link.waits = True
        link.unread += talks[talks.index(waiting) + 1 :]
        self.server.wait(waiting)
        if link.closed:
            self.server.left(link)

    def give(self, reply: Any) -> None:
        """Answer this talk's only command, which blocked."""
        link = self.link
        self.replies = [reply]
        link.network.answer(self, link.session.encoded(self.asked, reply))
        link.waits = False
        if link.unread:
            world = link.network.world
            world.at(world.now, Timer(self.server, lambda: read_on(link, self.boot)))

    def later(self) -> Request:
        made = super().later()
        if hasattr(self, "replies"):  # it is under way back
            made.replies = self.replies  # type: ignore[attr-defined]
        return made

    def tell(self, tap: Tap, reply: Any) -> None:
        for command, answer in zip(self.command, self.replies, strict=True):
            if self.link.session.is_about_data(command):
                tap.handled(self.link, command, answer)

    def fell_silent(self) -> None:
        self.link.network.speaks_no_more(self.link)

    def miss(self, tap: Tap) -> None:
        for command in self.command:
            if self.link.session.is_about_data(command):
                tap.lost(self.link, command)


def read_on(link: Stream, boot: int) -> None:
    """Read the commands that arrived while the connection was blocked."""
    while link.unread and not link.waits and link.server.boots == boot:
        link.unread.pop(0)._execute()
