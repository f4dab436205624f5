"""Models the state of one connection to a Redis server.

A library under test uses its own client: the server decodes the bytes of its socket, and answers in
bytes. A connection has commands of its own in addition to the model's: HELLO, AUTH, CLIENT, SELECT,
RESET, QUIT, WATCH and MULTI with EXEC and DISCARD, and those that subscribe. Any other command
raises Unknown with its name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from fencepost.hunt.models.redis.arguments import SYNTAX, CommandError, database, integer
from fencepost.hunt.models.redis.commands import WORDS
from fencepost.hunt.models.redis.decoder import MALFORMED, Command, Decoder
from fencepost.hunt.models.redis.pubsub import SUBSCRIBES, UNSUBSCRIBES, PubSub
from fencepost.hunt.models.redis.replies import OK, QUEUED, Status, Transaction, Verbatim
from fencepost.hunt.models.redis.resp import bytes_of
from fencepost.hunt.models.redis.watched import Watched
from fencepost.hunt.sim.network import LATER, Line, Refusal, Server
from fencepost.hunt.sim.unknown import Unknown

VERSION = "7.0.15"
"""The version of the server that the model is compared with."""
_ABORTED = "EXECABORT Transaction discarded"
_SUBSCRIBED = (
    "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
    "allowed in this context"
)
_NO_PASSWORD = (
    "ERR AUTH <password> called without any password configured for the default user. Are you sure "
    "your configuration is correct?"
)


class Transactional(Protocol):
    """A server that can execute several commands as one, and its subscriptions and watched keys."""

    pubsub: PubSub
    watched: Watched

    def together(self) -> AbstractContextManager[None]: ...

    def admit(self, command: Command, queued: bool) -> None:
        """Raise CommandError if the server refuses a command, which a transaction queues."""

    def admit_all(self, commands: list[Command]) -> None:
        """Raise CommandError if the server can no longer execute a transaction."""

    @property
    def role(self) -> str: ...

    def listen(self) -> None:
        """Note that keys are watched, or no longer."""

    def expired(self, key: str) -> bool:
        """Return whether a key is present that has expired."""

    def clients(self, asking: Session, args: list[str]) -> str:
        """Execute CLIENT LIST."""

    def disconnect(self, asking: Session, args: list[str]) -> Any:
        """Execute CLIENT KILL."""


def _transactional(server: Server) -> Transactional:
    return server  # type: ignore[return-value]  # isinstance takes as long as a command


class Session:
    """The server's state of one connection. `over`: the server closes it after the last reply."""

    line: Line | None = None

    def __init__(self, number: int) -> None:
        self.over = self.unasked = False
        self.number = number
        self.made_ms = self.seen_ms = 0
        self.last = "NULL"
        self.channels: dict[str, None] = {}
        self.patterns: dict[str, None] = {}
        self._decoder = Decoder()
        self.reset()

    def reset(self) -> None:
        self.version = 2
        self.name = ""
        self.queued: list[Command] | None = None
        self._spoilt = self._executes = False

    def commands(self, data: bytes) -> list[Command]:
        found = []
        for word, *args in self._decoder.feed(data):
            name = word.upper()
            self.unasked = self.unasked or name in SUBSCRIBES
            found.append((name, *args))
        return found

    def encoded(self, command: Command, reply: Any) -> bytes:
        return bytes_of(command, reply, self.version)

    def push(self, reply: Any) -> None:
        """Send a message to the client."""
        if self._executes:
            raise Unknown(
                "a transaction sends a message to its own connection, in the middle of its reply"
            )
        if self.line is None:
            raise Unknown("a client subscribes on a connection on which it cannot be sent messages")
        self.line.say(self.encoded((), reply))

    def is_about_data(self, command: Command) -> bool:
        return command[0] not in _QUIET

    def execute(self, server: Server, command: Command) -> Any:
        """Return the reply to one command, or LATER. Raises Unknown if the model lacks it."""
        name, *args = command
        if name == MALFORMED:
            self.over = True
            return Refusal(args[0])
        try:
            subscribed = self.version == 2 and (self.channels or self.patterns)
            if subscribed and not self._executes and name not in _WITH_SUBSCRIPTIONS:
                self._admit(server, command)
                self._refuse(server, command)
            if self.queued is not None and name not in _AT_ONCE:
                return self._queue(server, command)
            if subscribed and name == "PING":
                self._admit(server, command)
                return ["pong", args[0] if args else ""]
            if name not in _OWN:
                reply = server.handle(command)
                if reply is LATER and self.unasked:
                    raise Unknown(f"a client blocks in {name} on a connection that has subscribed")
                return reply
            self._admit(server, command)
            return _OWN[name](self, server, args)
        except CommandError as error:
            return Refusal(str(error))

    def _admit(self, server: Server, command: Command) -> None:
        """Check a command before its execution; an error spoils a transaction."""
        try:
            _transactional(server).admit(
                command, self.queued is not None and command[0] not in _AT_ONCE
            )
        except CommandError as error:
            self._spoilt = self.queued is not None
            if command[0] == "EXEC":
                self._abort(server, str(error))
            raise

    def _refuse(self, server: Server, command: Command) -> None:
        """Refuse a command because of the subscriptions of its connection."""
        self._spoilt = self.queued is not None
        name, *args = command
        word = f"|{args[0].lower()}" if name in WORDS else ""
        words = _SUBSCRIBED.format(name.lower() + word)
        if name == "EXEC":
            self._abort(server, words)
        raise CommandError(words)

    def _abort(self, server: Server, words: str) -> None:
        """Refuse EXEC, and forget the queued commands and the watched keys."""
        self.queued, self._spoilt = None, False
        self.unwatch(server, [])
        raise CommandError(f"{_ABORTED} because of: {words.removeprefix('ERR ')}")

    # Transactions.

    def _queue(self, server: Server, command: Command) -> Any:
        assert self.queued is not None
        self._admit(server, command)
        self.queued.append(command)
        return QUEUED

    def multi(self, server: Server, args: list[str]) -> Any:
        if self.queued is not None:
            raise CommandError("ERR MULTI calls can not be nested")
        self.queued = []
        return OK

    def discard(self, server: Server, args: list[str]) -> Any:
        if self.queued is None:
            raise CommandError("ERR DISCARD without MULTI")
        self.queued, self._spoilt = None, False
        return self.unwatch(server, args)

    def watch(self, server: Server, args: list[str]) -> Any:
        if self.queued is not None:
            raise CommandError("ERR WATCH inside MULTI is not allowed")
        host = _transactional(server)
        for key in args:
            host.watched.add(self, key, host.expired(key))
        host.listen()
        return OK

    def unwatch(self, server: Server, args: list[str]) -> Any:
        _transactional(server).watched.leave(self)
        _transactional(server).listen()
        return OK

    def exec_transaction(self, server: Server, args: list[str]) -> Any:
        if self.queued is None:
            raise CommandError("ERR EXEC without MULTI")
        host = _transactional(server)
        commands, spoilt = self.queued, self._spoilt
        self.queued, self._spoilt = None, False
        touched = host.watched.touched(self, host.expired)
        self.unwatch(server, args)
        if touched and not spoilt:
            return None
        try:
            host.admit_all(commands)
        except CommandError as error:
            raise CommandError(f"{_ABORTED} because of: {error}") from None
        if spoilt:
            raise CommandError(f"{_ABORTED} because of previous errors.")
        self._executes = True
        try:
            with host.together():
                replies = [self.encoded(one, self.execute(server, one)) for one in commands]
        finally:
            self._executes = False
        return Transaction(replies)

    # The connection.

    def hello(self, server: Server, args: list[str]) -> Any:
        version = self.version
        if args:
            try:
                version = integer(args[0])
            except CommandError:
                raise CommandError(
                    "ERR Protocol version is not an integer or out of range"
                ) from None
            if version not in (2, 3):
                raise CommandError("NOPROTO unsupported protocol version")
        self._greet(args[1:])
        self.version = version
        words = {"server": "redis", "version": VERSION, "proto": version, "id": self.number}
        return {**words, "mode": "standalone", "role": _transactional(server).role, "modules": []}

    def _greet(self, words: list[str]) -> None:
        """Take HELLO's options; those before an invalid one count."""
        while words:
            option, *more = words
            if option.upper() == "AUTH" and len(more) > 1:
                _log_in(more[0])
                words = more[2:]
            elif option.upper() == "SETNAME" and more:
                self.name, words = _checked_name(more[0]), more[1:]
            else:
                raise CommandError(f"ERR Syntax error in HELLO option '{option}'")

    def auth(self, server: Server, args: list[str]) -> Any:
        if len(args) > 2:
            raise CommandError(SYNTAX)
        if len(args) == 1:
            raise CommandError(_NO_PASSWORD)
        _log_in(args[0])
        return OK

    def client(self, server: Server, args: list[str]) -> Any:
        word, *more = args
        match word.upper():
            case "ID":
                return self.number
            case "GETNAME":
                return self.name or None
            case "SETNAME":
                self.name = _checked_name(more[0])
            case "LIST":
                return Verbatim(_transactional(server).clients(self, more))
            case "KILL":
                return _transactional(server).disconnect(self, more)
            case "NO-EVICT" if more[0].upper() not in ("ON", "OFF"):
                raise CommandError(SYNTAX)
        return OK

    def select(self, server: Server, args: list[str]) -> Any:
        database(args[0])
        return OK

    def start_anew(self, server: Server, args: list[str]) -> Any:
        self.unwatch(server, args)
        _transactional(server).pubsub.leave(self)
        self.reset()
        return Status("RESET")

    def quit(self, server: Server, args: list[str]) -> Any:
        self.over = True
        self.unwatch(server, args)
        _transactional(server).pubsub.leave(self)
        return OK


def _subscriptions(name: str) -> Callable[[Session, Server, list[str]], Any]:
    """Return the execution of a command that subscribes or unsubscribes."""
    return lambda session, server, args: _transactional(server).pubsub.execute(name, session, args)


def _log_in(user: str) -> None:
    # The default user has no password.
    if user != "default":
        raise CommandError("WRONGPASS invalid username-password pair or user is disabled.")


def _checked_name(name: str) -> str:
    if any(not "!" <= letter <= "~" for letter in name):
        raise CommandError(
            "ERR Client names cannot contain spaces, newlines or special characters."
        )
    return name


_OWN: dict[str, Callable[[Session, Server, list[str]], Any]] = {
    "HELLO": Session.hello,
    "AUTH": Session.auth,
    "CLIENT": Session.client,
    "SELECT": Session.select,
    "MULTI": Session.multi,
    "DISCARD": Session.discard,
    "EXEC": Session.exec_transaction,
    "WATCH": Session.watch,
    "UNWATCH": Session.unwatch,
    "RESET": Session.start_anew,
    "QUIT": Session.quit,
    **{name: _subscriptions(name) for name in SUBSCRIBES | UNSUBSCRIBES},
}
_AT_ONCE = frozenset({"MULTI", "DISCARD", "EXEC", "RESET", "QUIT", "WATCH"})
"""Commands that a transaction never queues."""
_WITH_SUBSCRIPTIONS = SUBSCRIBES | UNSUBSCRIBES | {"PING", "QUIT", "RESET"}
"""Commands that RESP2 allows on a connection with subscriptions."""
_QUIET = _OWN.keys() - SUBSCRIBES - UNSUBSCRIBES | {MALFORMED, "INFO"}
"""Commands that reveal nothing about a lock."""
