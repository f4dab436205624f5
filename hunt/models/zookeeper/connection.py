"""The server's end of one connection: a session of ZooKeeper, and what its client sends.

Requests are executed in their order. One that cannot be executed yet keeps back those after it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from fencepost.hunt.models.zookeeper import acls, answers, execution, requests
from fencepost.hunt.models.zookeeper.ensemble import Change, Ensemble, Member
from fencepost.hunt.models.zookeeper.errors import Refused
from fencepost.hunt.models.zookeeper.jute import INT, TooShort
from fencepost.hunt.models.zookeeper.requests import AUTH, CLOSE, PING, SYNC, WRITES, Connect
from fencepost.hunt.models.zookeeper.requests import Request as Asked
from fencepost.hunt.models.zookeeper.sessions import password
from fencepost.hunt.sim.network import Line, Refusal, Server
from fencepost.hunt.sim.unknown import Unknown

_LARGEST = 0xFFFFF
"""Of a request, in bytes (jute.maxbuffer)."""
MALFORMED = ("malformed",)
_QUIET = ("connect", "ping", *MALFORMED)


class Host(Member):
    """A server as its connections see it."""

    __slots__ = ("ensemble",)

    ensemble: Ensemble

    @abstractmethod
    def touch(self, session: int, timeout_ms: int) -> bool:
        """Note that a client has sent a request; return whether it has its session."""

    @abstractmethod
    def begun(self, connection: Connection) -> None:
        """Note that a connection has a session now."""

    @abstractmethod
    def waits(self, connection: Connection) -> None:
        """Let a connection proceed as soon as changes can be made."""

    @abstractmethod
    def detach(self, connection: Connection) -> None:
        """Forget which session a connection has."""

    @abstractmethod
    def gone(self, connection: Connection) -> None:
        """Forget a connection, which is closed; its session remains."""


class Connection:
    """`session`: its number, 0 before the client has one. `ids`: its authenticated identities."""

    over = unasked = False

    def __init__(self, server: Host) -> None:
        self.server = server
        self.line: Line | None = None
        self.session = 0
        self.ids: list[str] = []
        self._timeout_ms = 0
        # The leader executes a request of this connection.
        self._busy = False
        self._waiting: deque[Asked | Connect] = deque()
        # The bytes that the client has sent of a record.
        self._received = b""
        self._begun = False

    # Requests, as the bytes of the client's socket.

    def commands(self, data: bytes) -> list[tuple[Any, ...]]:
        self._received += data
        found: list[tuple[Any, ...]] = []
        while len(self._received) >= INT.size:
            length = INT.unpack_from(self._received)[0]
            if not self._begun and self._received[:4].decode("latin-1") in requests.WORDS:
                word = self._received[:4].decode()
                raise Unknown(f"the model of ZooKeeper has no four-letter word {word}")
            if not 0 <= length <= _LARGEST:
                self._received = b""
                return [*found, MALFORMED]
            end = INT.size + length
            if len(self._received) < end:
                break
            record, self._received = self._received[INT.size : end], self._received[end:]
            found.append(self._decoded(record))
        return found

    def _decoded(self, record: bytes) -> tuple[Any, ...]:
        try:
            if self._begun:
                return requests.request(record)
            self._begun = True
            return requests.connect(record)
        except TooShort:
            return MALFORMED

    def is_about_data(self, command: tuple[Any, ...]) -> bool:
        return command[0] not in _QUIET

    def encoded(self, command: tuple[Any, ...], reply: Any) -> bytes:
        return b""  # it answers on its line

    # Their execution.

    def execute(self, server: Server, command: tuple[Any, ...]) -> Any:
        """Execute a request, or keep it until it can be executed; return whether it succeeded, as
        far as is known."""
        if not isinstance(command, Asked | Connect):
            self.hang_up()
            return Refusal("malformed")
        if (
            isinstance(command, Asked)
            and self.session
            and not self.server.touch(self.session, self._timeout_ms)
        ):
            return Refusal("no session")  # ZooKeeper drops the request
        if self._waiting or not self._can(command):
            self._waiting.append(command)
            self.server.waits(self)
            return True
        return self._do(command)

    def proceed(self) -> None:
        """Execute the requests that have waited."""
        while self._waiting and self._is_open and self._can(self._waiting[0]):
            self._do(self._waiting.popleft())

    @property
    def _is_open(self) -> bool:
        return self.line is not None and self.line.open

    def _can(self, command: Asked | Connect) -> bool:
        """Whether it can be executed: changes, new sessions and sync take a leader."""
        if self._busy:
            return False
        changes = isinstance(command, Connect) or command.type in WRITES or command.type == SYNC
        ensemble = self.server.ensemble
        return not changes or ensemble.commits or ensemble.leader is None

    def _do(self, command: Asked | Connect) -> Any:
        server = self.server
        if server.ensemble.leader is None:
            self.hang_up()
            return Refusal("the server does not serve")
        if isinstance(command, Connect):
            return self._connect(command)
        if command.type == AUTH:
            return self._log_in(command)
        if execution.moved(server.ensemble, self, command):
            # A session may be moved by a request to connect that arrives late; without this the
            # client would keep the wrong server (ZOOKEEPER-710).
            self.hang_up()
            return Refusal("session moved")
        if command.type == PING:
            self._say(answers.answer(answers.PING, server.zxid))
            return True
        if command.type in WRITES or command.type == SYNC:
            return self._change(command)
        answer, error = execution.read(self, command)
        self._say(answer)
        return Refusal(str(error)) if error else True

    def _change(self, asked: Asked) -> Any:
        """Let the leader execute a request, and answer it once this server has learned of it."""
        closes = asked.type == CLOSE
        if closes:
            self.server.detach(self)  # so that it is closed after the answer
        self._busy = True
        boots = self.server.boots

        def answered(answer: bytes) -> None:
            self._busy = False
            if self.server.boots == boots:
                self._say(answer)
                if closes:
                    self.hang_up()
                self.proceed()

        error = execution.change(self.server.ensemble, self, asked, answered)
        return Refusal(str(error)) if error else True

    def _connect(self, asked: Connect) -> Any:
        server, ensemble = self.server, self.server.ensemble
        if asked.last_zxid > server.zxid:
            self.hang_up()
            return Refusal("the client has seen later changes")
        self._timeout_ms = ensemble.timing.negotiated(asked.timeout_ms)
        if asked.session:
            server.close(asked.session)
            if asked.password != password(asked.session):
                return self._refuse()
            if not ensemble.take_over(asked.session, self._timeout_ms, server.index):
                self._learn_then(self._refuse)
                return Refusal("no such session")
            self.session = asked.session
        else:
            ensemble.zxid += 1
            self.session = ensemble.new_session(self._timeout_ms, server.index)
        self._learn_then(self._begin)
        return True

    def _learn_then(self, then: Callable[[], object]) -> None:
        """Continue as soon as this server has learned all changes of the leader."""
        self._busy = True
        boots = self.server.boots

        def learned() -> None:
            self._busy = False
            if self.server.boots == boots and self._is_open:
                then()
                self.proceed()

        self.server.waits(self)
        ensemble = self.server.ensemble
        ensemble.made(Change(ensemble.zxid, by=self.server, then=learned))

    def _begin(self) -> None:
        self.server.begun(self)
        self._say(answers.session(self._timeout_ms, self.session, password(self.session)))

    def _refuse(self) -> Refusal:
        self._say(answers.session(0, 0, bytes(16)))
        self.hang_up()
        return Refusal("no such session")

    def _log_in(self, asked: Asked) -> Any:
        _, scheme, secret = asked.fields
        try:
            id = acls.log_in(scheme, secret)
            if id not in self.ids:
                self.ids.append(id)
        except Refused as error:
            self._say(answers.answer(answers.AUTH, 0, error.code))
            self.hang_up()
            return Refusal("not authenticated")
        self._say(answers.answer(answers.AUTH, 0))
        return True

    def tell(self, kind: int, path: str, acl: Sequence[requests.Acl] = acls.ALL) -> None:
        """Tell the client that a watch has fired, if it may read the znode (CVE-2024-23944)."""
        with suppress(Refused):
            acls.check(acl, acls.READ, self.ids)
            self._say(answers.notice(kind, path))

    def _say(self, data: bytes) -> None:
        if self.line is not None and self.line.open:
            self.line.say(data)

    def hang_up(self) -> None:
        """Close the connection."""
        self.server.gone(self)
        if self.line is not None:
            self.line.hang_up()
