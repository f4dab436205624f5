"""A session of the server: it executes a client's messages in their order, and answers them.

A statement that waits for a lock keeps back the messages after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from inspect import GEN_RUNNING, getgeneratorstate
from typing import Any

from fencepost.hunt.models.postgres import messages
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.locks import Waiter, Waits
from fencepost.hunt.models.postgres.messages import INT, Message, framed, text
from fencepost.hunt.models.postgres.queries import Queries
from fencepost.hunt.models.postgres.settings import REPORTED
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import MS, Timer

_TIMEOUT = PgError("57014", "canceling statement due to statement timeout")


class Backend(Queries):
    """`say` sends bytes to the client; `hang_up` closes its connection. `ready`: called when it
    waits for the next query, for a pooler. `client`: the node of the client."""

    def __init__(
        self, server: Any, pid: int, user: str, database: str,
        say: Callable[[bytes], None], hang_up: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__(server)
        self.pid = pid
        self.secret = pid * 7919 + 17
        self.user = user
        self.database = database
        self.client = ""
        self.over = False
        self.say = say
        self.hang_up = hang_up
        self._queue: deque[Message] = deque()
        self._work: Waits | None = None
        self._skips = False
        self._timers: list[Timer] = []
        self._until = 0
        self._gone = False

    # Messages.

    def receive(self, message: Message) -> None:
        self._queue.append(message)
        self.pump()
        self.server.proceed()

    def gone(self) -> None:
        """Note that the client has closed the connection; a statement that waits continues."""
        self._gone = True
        if self._work is None:
            self.end()
        self.server.proceed()

    def pump(self) -> None:
        while self._queue and self._work is None and not self.over:
            message = self._queue.popleft()
            if message[0] == "terminate":
                self.end()
                return
            self._stop_timers()
            self._work = self._handle(message)
            self._advance(None)
        if self._gone and self._work is None:
            self.end()

    def _advance(self, error: PgError | None) -> None:
        assert self._work is not None
        self._stop_timers()
        self.waiter = None
        try:
            self.waiter = next(self._work) if error is None else self._work.throw(error)
        except StopIteration:
            self._work = None
            return
        self._begin_timers()

    def resume(self) -> None:
        """Continue after a wait."""
        if self._work is not None and not self.over:
            self._advance(None)
            self.pump()

    def interrupt(self, error: PgError) -> None:
        """End the wait of the present statement with an error, if it waits."""
        if self._work is None or self.waiter is None:
            return
        self.server.locks.leave(self.waiter)
        if error.severity == "FATAL":
            self.terminate(error)
        else:
            self._advance(error)
            self.pump()
        self.server.proceed()

    def terminate(self, error: PgError) -> None:
        """End the session with an error."""
        if not self.over:
            self._out += framed("E", messages.told(error.severity, error.code, error.message))
            self._flush()
            self.end()

    def end(self) -> None:
        """End the session: its transaction is rolled back, and its locks are free."""
        if self.over:
            return
        self.over = True
        self._stop_timers()
        if self.waiter is not None:
            self.server.locks.leave(self.waiter)
            self.waiter = None
        if self._work is not None:
            work, self._work = self._work, None
            if getgeneratorstate(work) != GEN_RUNNING:
                work.close()
        self.rollback()
        self.advisory_unlock_all()
        self.server.ended(self)
        self.hang_up()

    # Timers.

    def _at(self, ms: int, call: Callable[[], None]) -> None:
        world = self.server.world

        def due() -> None:
            if not self.over:
                call()
                self.server.proceed()

        timer = Timer(self.server, due)
        world.at(world.now + ms * MS, timer)
        self._timers.append(timer)

    def _stop_timers(self) -> None:
        for timer in self._timers:
            timer.off = True
        self._timers.clear()

    def _begin_timers(self) -> None:
        settings, waiter = self.settings, self.waiter
        if waiter.tag[0] != "sleep":
            self._at(settings.ms("deadlock_timeout"), self._check)
            if settings.ms("lock_timeout"):
                error = PgError("55P03", "canceling statement due to lock timeout")
                self._at(settings.ms("lock_timeout"), lambda: self.interrupt(error))
        if self._until:
            left = max(0, self._until - self.server.world.now)
            self._at(left // MS, lambda: self.interrupt(_TIMEOUT))
        self._look_for_client()

    def _look_for_client(self) -> None:
        every = self.settings.ms("client_connection_check_interval")
        if every:

            def look() -> None:
                if self._gone:
                    self.end()
                else:
                    self._look_for_client()

            self._at(every, look)

    def _check(self) -> None:
        if self.waiter is not None and self.server.locks.deadlocked(self.waiter):
            self.interrupt(PgError("40P01", "deadlock detected"))

    def _idle_timers(self) -> None:
        name = (
            "idle_session_timeout" if self.block == "I" else "idle_in_transaction_session_timeout"
        )
        if self.settings.ms(name):
            code, words = ("57P05", "idle-session") if self.block == "I" else (
                "25P03", "idle-in-transaction",
            )  # fmt: skip
            error = PgError(code, f"terminating connection due to {words} timeout", "FATAL")
            self._at(self.settings.ms(name), lambda: self.terminate(error))

    def sleeps(self, seconds: float) -> Waits:
        waiter = Waiter(self, ("sleep", self.pid), 0)
        world = self.server.world

        def wakes() -> None:
            if self.waiter is waiter and not self.over:
                self.resume()
                self.server.proceed()

        world.at(world.now + round(seconds * 1e9), Timer(self.server, wakes))
        yield waiter
        return ""

    # Answers.

    def notice(self, severity: str, code: str, message: str) -> None:
        self._out += framed("N", messages.told(severity, code, message))
        # As `send_message_to_frontend` (elog.c) does, so that a client of a statement that waits
        # has it.
        self._flush()

    def _flush(self) -> None:
        out, self._out = self._out, b""
        if out:
            self.say(out)

    def greet(self, given: dict[str, str]) -> None:
        """Answer a client's first message."""
        try:
            self.settings.start(given)
        except PgError as error:
            self.terminate(PgError(error.code, error.message, "FATAL"))
            return
        self._out += framed("R", INT.pack(0)) + self.parameters()
        self._out += framed("K", INT.pack(self.pid) + INT.pack(self.secret))
        self._ready()

    def parameters(self) -> bytes:
        fixed = {
            "in_hot_standby": "off", "integer_datetimes": "on", "IntervalStyle": "postgres",
            "is_superuser": "on", "server_encoding": "UTF8", "server_version":
            "15.18 (Debian 15.18-0+deb12u1)", "session_authorization": self.user,
            "standard_conforming_strings": "on", "default_transaction_read_only": "off",
        }  # fmt: skip
        shown = {word: self.settings.show(name) for name, word in REPORTED.items()}
        return b"".join(
            framed("S", text(name) + text(value)) for name, value in {**shown, **fixed}.items()
        )

    def _ready(self) -> None:
        self.server.rests(self)
        self._out += framed("Z", self.block.encode())
        self._flush()
        self._idle_timers()

    def configure(self, name: str, value: str | None, local: bool) -> None:
        if name == "all":
            self.settings.reset()
            return
        before = self.settings.set(name, value)
        undo = _Undo(self, name.lower(), before, local)
        self.xact.undo.append(undo)
        self.report(name.lower())

    def report(self, name: str) -> None:
        if name in REPORTED:
            value = self.settings.show(name)
            self._out += framed("S", text(REPORTED[name]) + text(value))

    # The handling of messages.

    def _handle(self, message: Message) -> Waits:
        kind = message[0]
        if kind == "sync":
            self._sync()
            return
        if kind == "flush":
            self._flush()
            return
        if kind == "malformed":
            raise Unknown("the client sends bytes that are no message of PostgreSQL's protocol")
        if kind == "other":
            raise Unknown(f"the model of PostgreSQL has no message {message[1]}")
        if self._skips and kind != "query":
            return
        self.statement_us = self.clock_us()
        self.implicit = False
        timeout = self.settings.ms("statement_timeout")
        self._until = self.server.world.now + timeout * MS if timeout else 0
        try:
            yield from getattr(self, f"_{kind}")(*message[1:])
        except PgError as error:
            self._out += framed("E", messages.told(error.severity, error.code, error.message))
            self.fail()
            self._portals.clear()
            self._skips = kind != "query"
        if kind == "query":
            self._skips = False
            self._ready()

    def _sync(self) -> None:
        self._skips = False
        if self.block == "I":
            self.commit()
        self._portals.clear() if self.block == "I" else None
        self._ready()


class _Undo:
    """Restores a setting. `local`: also after a commit."""

    def __init__(self, session: Backend, name: str, value: Any, local: bool) -> None:
        self._session = session
        self._name = name
        self._value = value
        self.local = local

    def __call__(self) -> None:
        self._session.settings.restore(self._name, self._value)
        self._session.report(self._name)
