"""Decodes and encodes Redis' wire protocol (RESP2 and RESP3), and models a connection's state.

A library under test uses its own client: the server decodes the bytes of its socket, and answers in
bytes. A connection has commands of its own in addition to the model's: HELLO, CLIENT, SELECT, and
MULTI with EXEC and DISCARD. Any other command raises Unknown with its name.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from fencepost.hunt.models.redis.commands import NAMES
from fencepost.hunt.models.redis.lists import BLOCKS
from fencepost.hunt.sim.network import Refusal, Server
from fencepost.hunt.sim.unknown import Unknown

Command = tuple[str, ...]
_END = b"\r\n"
_STATUS = {"OK", "PONG", "QUEUED", "RESET"}
# Commands whose reply is a status; for all others a text such as OK is a value.
_SAYS = {"SET", "PING", "HELLO", "CLIENT", "SELECT", "MULTI", "DISCARD", "RESET", "SCRIPT", "EVAL",
         "EVALSHA", "FLUSHDB", "FLUSHALL"}  # fmt: skip
_MORE = {"EVAL", "EVALSHA", "SCRIPT", "ROLE", "TIME", "WAIT"}
_CUT_SHORT = 40


class Decoder:
    """Decodes bytes into commands, in pieces of any length."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Command]:
        """Return the commands that are complete now."""
        self._rest += data
        found = []
        while (end := self._complete()) is not None:
            found.append(end)
        return found

    def _complete(self) -> Command | None:
        if not self._rest:
            return None
        place = self._rest.find(_END)
        if place < 0:
            return None
        if self._rest[:1] != b"*":  # an inline command
            line, self._rest = self._rest[:place], self._rest[place + 2 :]
            return tuple(_text(word) for word in line.split()) or None
        words, at = [], place + 2
        for _ in range(int(self._rest[1:place])):
            end = self._rest.find(_END, at)
            if end < 0:
                return None
            size = int(self._rest[at + 1 : end])
            at = end + 2 + size + 2
            if len(self._rest) < at:
                return None
            words.append(_text(self._rest[end + 2 : end + 2 + size]))
        self._rest = self._rest[at:]
        return tuple(words)


def _text(data: bytes) -> str:
    # All bytes survive a round trip.
    return data.decode("utf-8", "surrogateescape")


def encoded(reply: Any, status: bool, version: int) -> bytes:
    """Encode a reply; `status`: a text such as OK is a status and not a value."""
    if reply is None:
        return b"_\r\n" if version == 3 else b"$-1\r\n"
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, Refusal):
        return b"-%s\r\n" % str(reply).encode("utf-8", "surrogateescape").replace(_END, b" ")
    if isinstance(reply, str):
        data = reply.encode("utf-8", "surrogateescape")
        if status and reply in _STATUS:
            return b"+%s\r\n" % data
        return b"$%d\r\n%s\r\n" % (len(data), data)
    if isinstance(reply, dict):
        many = b"%%%d\r\n" % len(reply) if version == 3 else b"*%d\r\n" % (2 * len(reply))
        pairs = (part for pair in reply.items() for part in pair)
        return many + b"".join(encoded(one, False, version) for one in pairs)
    return b"*%d\r\n" % len(reply) + b"".join(encoded(one, status, version) for one in reply)


@runtime_checkable
class Transactional(Protocol):
    """A server that can execute several commands as one."""

    def together(self) -> AbstractContextManager[None]: ...


class Session:
    """The server's state of one connection."""

    def __init__(self) -> None:
        self.version = 2
        self._decoder = Decoder()
        self._queued: list[Command] | None = None

    def commands(self, data: bytes) -> list[Command]:
        return [(one[0].upper(), *one[1:]) for one in self._decoder.feed(data)]

    def encoded(self, command: Command, reply: Any) -> bytes:
        return bytes_of(command, reply, self.version)

    def is_about_data(self, command: Command) -> bool:
        return command[0] not in _OWN

    def execute(self, server: Server, command: Command) -> Any:
        """Return the reply to one command, or LATER. Raises Unknown if the model lacks it."""
        name, args = command[0].upper(), command[1:]
        if self._queued is not None and name not in ("EXEC", "DISCARD", "MULTI", "RESET"):
            if name not in NAMES | _MORE:
                raise Unknown(f"the model of Redis has no command {name[:_CUT_SHORT]}")
            self._queued.append(command)
            return "QUEUED"
        own = _OWN.get(name)
        if own is not None:
            return own(self, server, args)
        return server.handle((name, *args))

    def hello(self, server: Server, args: Command) -> Any:
        version = args[0] if args else str(self.version)
        if version not in ("2", "3"):
            return Refusal("NOPROTO unsupported protocol version")
        self.version = int(version)
        words = {"server": "redis", "version": "7.0.15", "proto": self.version, "id": 1}
        return {**words, "mode": "standalone", "role": "master", "modules": []}

    def client(self, server: Server, args: Command) -> Any:
        words = args[0].upper() if args else ""
        if words in ("SETINFO", "SETNAME", "NO-EVICT", "NO-TOUCH"):
            return "OK"
        if words == "ID":
            return 1
        if words == "GETNAME":
            return None
        return Refusal(f"ERR unknown subcommand '{args[0] if args else ''}'. Try CLIENT HELP.")

    def select(self, server: Server, args: Command) -> Any:
        if args[:1] != ("0",):
            raise Unknown("the model of Redis has one database, number 0")
        return "OK"

    def multi(self, server: Server, args: Command) -> Any:
        if self._queued is not None:
            return Refusal("ERR MULTI calls can not be nested")
        self._queued = []
        return "OK"

    def discard(self, server: Server, args: Command) -> Any:
        if self._queued is None:
            return Refusal("ERR DISCARD without MULTI")
        self._queued = None
        return "OK"

    def exec_transaction(self, server: Server, args: Command) -> Any:
        if self._queued is None:
            return Refusal("ERR EXEC without MULTI")
        commands, self._queued = self._queued, None
        assert isinstance(server, Transactional)
        with server.together():
            return [self.execute(server, command) for command in commands]


_OWN = {
    "HELLO": Session.hello,
    "CLIENT": Session.client,
    "SELECT": Session.select,
    "MULTI": Session.multi,
    "DISCARD": Session.discard,
    "EXEC": Session.exec_transaction,
}
"""Commands that concern the connection only, and reveal nothing about a lock."""


def _gives_lists(command: Command) -> bool:
    """Return whether the command returns a list when it finds something."""
    name = command[0].upper()
    return name in BLOCKS or (name in ("LPOP", "RPOP") and len(command) > 2)


def bytes_of(command: Command, reply: Any, version: int) -> bytes:
    """Return the bytes of the reply to a command."""
    if reply is None and version != 3 and _gives_lists(command):
        return b"*-1\r\n"
    return encoded(reply, command[0].upper() in _SAYS, version)
