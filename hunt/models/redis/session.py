"""Models the state of one connection to a Redis server.

A library under test uses its own client: the server decodes the bytes of its socket, and answers in
bytes. A connection has commands of its own in addition to the model's: HELLO, AUTH, CLIENT, SELECT,
RESET, QUIT, and MULTI with EXEC and DISCARD. Any other command raises Unknown with its name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

from fencepost.hunt.models.redis.arguments import SYNTAX, CommandError, integer
from fencepost.hunt.models.redis.decoder import MALFORMED, Command, Decoder
from fencepost.hunt.models.redis.replies import OK, QUEUED, Status, Transaction
from fencepost.hunt.models.redis.resp import bytes_of
from fencepost.hunt.sim.network import Refusal, Server
from fencepost.hunt.sim.unknown import Unknown

_VERSION = "7.0.15"
_DATABASES, _HALF = 16, 2**31
_ABORTED = "EXECABORT Transaction discarded"
_NO_PASSWORD = (
    "ERR AUTH <password> called without any password configured for the default user. Are you sure "
    "your configuration is correct?"
)


class Transactional(Protocol):
    """A server that can execute several commands as one."""

    def together(self) -> AbstractContextManager[None]: ...

    def admit(self, command: Command, queued: bool) -> None:
        """Raise CommandError if the server refuses a command, which a transaction queues."""

    def admit_all(self, commands: list[Command]) -> None:
        """Raise CommandError if the server can no longer execute a transaction."""

    @property
    def role(self) -> str: ...


def _transactional(server: Server) -> Transactional:
    return cast(Transactional, server)  # isinstance would take as long as a command


class Session:
    """The server's state of one connection. `over`: the server closes it after the last reply."""

    def __init__(self, number: int) -> None:
        self.over = False
        self._number = number
        self._decoder = Decoder()
        self.reset()

    def reset(self) -> None:
        self._version = 2
        self._name = ""
        self._queued: list[Command] | None = None
        self._spoilt = False

    def commands(self, data: bytes) -> list[Command]:
        return [(one[0].upper(), *one[1:]) for one in self._decoder.feed(data)]

    def encoded(self, command: Command, reply: Any) -> bytes:
        return bytes_of(command, reply, self._version)

    def is_about_data(self, command: Command) -> bool:
        return command[0] not in _OWN and command[0] != MALFORMED

    def execute(self, server: Server, command: Command) -> Any:
        """Return the reply to one command, or LATER. Raises Unknown if the model lacks it."""
        name, *args = command
        if name == MALFORMED:
            self.over = True
            return Refusal(args[0])
        try:
            if self._queued is not None and name not in _AT_ONCE:
                return self._queue(server, command)
            if name not in _OWN:
                return server.handle(command)
            self._admit(server, command)
            return _OWN[name](self, server, args)
        except CommandError as error:
            return Refusal(str(error))

    def _admit(self, server: Server, command: Command) -> None:
        """Check a command before its execution; an error spoils a transaction."""
        try:
            _transactional(server).admit(
                command, self._queued is not None and command[0] not in _AT_ONCE
            )
        except CommandError as error:
            self._spoilt = self._queued is not None
            if command[0] == "EXEC":
                self._queued, self._spoilt = None, False
                words = str(error).removeprefix("ERR ")
                raise CommandError(f"{_ABORTED} because of: {words}") from None
            raise

    # Transactions.

    def _queue(self, server: Server, command: Command) -> Any:
        assert self._queued is not None
        self._admit(server, command)
        self._queued.append(command)
        return QUEUED

    def multi(self, server: Server, args: list[str]) -> Any:
        if self._queued is not None:
            raise CommandError("ERR MULTI calls can not be nested")
        self._queued = []
        return OK

    def discard(self, server: Server, args: list[str]) -> Any:
        if self._queued is None:
            raise CommandError("ERR DISCARD without MULTI")
        self._queued, self._spoilt = None, False
        return OK

    def exec_transaction(self, server: Server, args: list[str]) -> Any:
        if self._queued is None:
            raise CommandError("ERR EXEC without MULTI")
        commands, spoilt = self._queued, self._spoilt
        self._queued, self._spoilt = None, False
        try:
            _transactional(server).admit_all(commands)
        except CommandError as error:
            raise CommandError(f"{_ABORTED} because of: {error}") from None
        if spoilt:
            raise CommandError(f"{_ABORTED} because of previous errors.")
        with _transactional(server).together():
            return Transaction(self.encoded(one, self.execute(server, one)) for one in commands)

    # The connection.

    def hello(self, server: Server, args: list[str]) -> Any:
        version = self._version
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
        self._version = version
        words = {"server": "redis", "version": _VERSION, "proto": version, "id": self._number}
        return {**words, "mode": "standalone", "role": _transactional(server).role, "modules": []}

    def _greet(self, words: list[str]) -> None:
        """Take HELLO's options; those before an invalid one count."""
        while words:
            option, *more = words
            if option.upper() == "AUTH" and len(more) > 1:
                _log_in(more[0])
                words = more[2:]
            elif option.upper() == "SETNAME" and more:
                self._name, words = _checked_name(more[0]), more[1:]
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
                return self._number
            case "GETNAME":
                return self._name or None
            case "SETNAME":
                self._name = _checked_name(more[0])
            case "NO-EVICT" if more[0].upper() not in ("ON", "OFF"):
                raise CommandError(SYNTAX)
        return OK

    def select(self, server: Server, args: list[str]) -> Any:
        number = integer(args[0])
        if not -_HALF <= number < _HALF:
            raise CommandError(
                f"ERR value is out of range, value must between {-_HALF} and {_HALF - 1}"
            )
        if not 0 <= number < _DATABASES:
            raise CommandError("ERR DB index is out of range")
        if number:
            raise Unknown(f"the model of Redis has one database, number 0, and no {number}")
        return OK

    def start_anew(self, server: Server, args: list[str]) -> Any:
        self.reset()
        return Status("RESET")

    def quit(self, server: Server, args: list[str]) -> Any:
        self.over = True
        return OK


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
    "RESET": Session.start_anew,
    "QUIT": Session.quit,
}
_AT_ONCE = frozenset({"MULTI", "DISCARD", "EXEC", "RESET", "QUIT"})
"""Commands that a transaction never queues."""
