"""A session of the server: it executes a client's messages in their order, and answers them.

A statement that waits for a lock keeps back the messages after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import GEN_RUNNING, getgeneratorstate
from typing import Any

from fencepost.hunt.models.postgres import messages, syntax, utility
from fencepost.hunt.models.postgres.analysis import Context, Typed
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.execution import Plan, Planner, relations
from fencepost.hunt.models.postgres.locks import Waiter, Waits
from fencepost.hunt.models.postgres.messages import INT, SHORT, Message, framed, text
from fencepost.hunt.models.postgres.parser import statements
from fencepost.hunt.models.postgres.settings import REPORTED
from fencepost.hunt.models.postgres.transaction import Transactions
from fencepost.hunt.models.postgres.types import BY_OID, TEXT, UNKNOWN, Type, from_bytes, to_bytes
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import MS, Timer

_DEALS = (syntax.Select, syntax.Insert, syntax.Update, syntax.Delete)
_TIMEOUT = PgError("57014", "canceling statement due to statement timeout")


@dataclass
class Prepared:
    """A prepared statement; `statement` None: an empty query. `told`: the types of parameters that
    the client has named."""

    sql: str
    statement: Any
    params: dict[int, Type]
    columns: Sequence[Typed]
    table: Any


@dataclass
class Portal:
    prepared: Prepared
    params: Sequence[Any]
    formats: Sequence[int]
    rows: list[Any] | None = None
    tag: str = ""
    sent: int = 0


class Backend(Transactions):
    """`say` sends bytes to the client; `hang_up` closes its connection. `ready`: called when it
    waits for the next query, for a pooler."""

    def __init__(
        self, server: Any, pid: int, user: str, database: str,
        say: Callable[[bytes], None], hang_up: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__(server)
        self.pid = pid
        self.secret = pid * 7919 + 17
        self.user = user
        self.database = database
        self.over = False
        self.say = say
        self.hang_up = hang_up
        self.prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._queue: deque[Message] = deque()
        self._work: Waits | None = None
        self._skips = False
        self._out = b""
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

    def _query(self, sql: str) -> Waits:
        # The unnamed statement ends with a simple query.
        self.prepared.pop("", None)
        found = statements(sql)
        if not found:
            self._out += framed("I")
            return
        self.implicit = len(found) > 1
        for statement in found:
            self._admit(statement)
            self.begin_statement()
            if isinstance(statement, _DEALS):
                params: dict[int, Type] = {}
                context = Context(self, ())
                yield from self._lock_relations(statement)
                plan = Planner(self, sql, params, context).plan(statement)
                if params:
                    raise PgError("42P02", f"there is no parameter ${min(params)}")
                tag = yield from self._deal(plan, context, statement)
            elif isinstance(statement, syntax.Show):
                shown = _shown(statement)
                self._describe_rows(shown, None, ())
                self._send_rows([(self._show(statement),)], shown, ())
                tag = "SHOW"
            else:
                tag = yield from self._other(statement)
            self._out += framed("C", text(tag))
            if self.block == "I" and len(found) == 1:
                self.commit()
        if self.block == "I":
            self.commit()

    def _deal(self, plan: Plan, context: Context, statement: Any) -> Waits:
        """Execute a statement on data, and send its rows; those before an error as well."""
        is_select = isinstance(statement, syntax.Select)
        if is_select:
            self._describe_rows(plan.columns, plan.table, ())
        try:
            rows, tag = yield from plan.run(context)
        except PgError:
            if is_select:
                self._send_rows(context.rows, plan.columns, ())
            raise
        if plan.columns and not is_select:
            self._describe_rows(plan.columns, plan.table, ())
        self._send_rows(rows, plan.columns, ())
        return tag

    def _show(self, statement: syntax.Show) -> str:
        if statement.name == "transaction_isolation":
            return self.isolation
        return self.settings.show(statement.name)

    def _other(self, statement: Any) -> Waits:
        if isinstance(statement, syntax.Transaction):
            return self.transact(statement)
        return (yield from utility.execute(self, statement))

    def _admit(self, statement: Any) -> None:
        """Refuse statements in a transaction that has failed."""
        ends = isinstance(statement, syntax.Transaction) and statement.do in (
            "commit", "rollback", "rollback to",
        )  # fmt: skip
        if self.block == "E" and not ends:
            words = "current transaction is aborted, commands ignored until end of transaction "
            raise PgError("25P02", words + "block")

    # The extended protocol.

    def _parse(self, name: str, sql: str, oids: tuple[int, ...]) -> Waits:
        if name and name in self.prepared:
            raise PgError("42P05", f'prepared statement "{name}" already exists')
        found = statements(sql)
        if len(found) > 1:
            words = "cannot insert multiple commands into a prepared statement"
            raise PgError("42601", words)
        statement = found[0] if found else None
        if statement is not None:
            self._admit(statement)
        self.begin_statement()
        params = {n: _type(oid, sql) for n, oid in enumerate(oids, 1) if oid}
        columns: Sequence[Typed] = ()
        table = None
        if isinstance(statement, _DEALS):
            yield from self._lock_relations(statement)
            plan = self._plan(sql, statement, params, None)
            columns, table = plan.columns, plan.table
        elif isinstance(statement, syntax.Show):
            columns = _shown(statement)
        self.prepared[name] = Prepared(sql, statement, params, columns, table)
        self._out += framed("1")

    def _lock_relations(self, statement: Any) -> Waits:
        for name, mode in relations(statement):
            yield from self.lock_table(self.server.table(self, name), mode)

    def _plan(
        self, sql: str, statement: Any, params: dict[int, Type], context: Context | None
    ) -> Plan:
        plan = Planner(self, sql, params, context).plan(statement)
        for number, type_ in params.items():
            if type_ is UNKNOWN:
                words = f"could not determine data type of parameter ${number}"
                raise PgError("42P18", words)
        return plan

    def _named(self, name: str) -> Prepared:
        found = self.prepared.get(name)
        if found is None:
            which = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise PgError("26000", f"{which} does not exist")
        return found

    def _bind(
        self, portal: str, name: str, formats: tuple[int, ...], values: tuple[Any, ...],
        results: tuple[int, ...],
    ) -> Waits:  # fmt: skip
        prepared = self._named(name)
        count = max(prepared.params, default=0)
        if len(values) != count:
            words = f"bind message supplies {len(values)} parameters, but prepared statement "
            raise PgError("08P01", f'{words}"{name}" requires {count}')
        # An empty statement as well: it ends no transaction.
        self._admit(prepared.statement)
        self.begin_statement()
        params = []
        for number, value in enumerate(values):
            type_ = prepared.params.get(number + 1, TEXT)
            binary = bool(formats) and formats[number if len(formats) > 1 else 0] == 1
            try:
                params.append(from_bytes(value, type_, binary))
            except KeyError:
                raise Unknown(
                    f"the model of PostgreSQL has no binary form of {type_.name}: {prepared.sql}"
                ) from None
        if isinstance(prepared.statement, _DEALS):
            context = Context(self, params)
            yield from self._lock_relations(prepared.statement)
            self._plan(prepared.sql, prepared.statement, dict(prepared.params), context)
        self._portals[portal] = Portal(prepared, params, results)
        self._out += framed("2")

    def _describe(self, what: str, name: str) -> Waits:
        if what == "S":
            prepared = self._named(name)
            formats: Sequence[int] = ()
            count = max(prepared.params, default=0)
            oids = [INT.pack(prepared.params.get(n + 1, TEXT).oid) for n in range(count)]
            self._out += framed("t", SHORT.pack(count) + b"".join(oids))
        else:
            portal = self._portal(name)
            prepared, formats = portal.prepared, portal.formats
        if prepared.columns:
            self._describe_rows(prepared.columns, prepared.table, formats)
        else:
            self._out += framed("n")
        return
        yield

    def _portal(self, name: str) -> Portal:
        found = self._portals.get(name)
        if found is None:
            raise PgError("34000", f'portal "{name}" does not exist')
        return found

    def _execute(self, name: str, most: int) -> Waits:
        portal = self._portal(name)
        prepared = portal.prepared
        statement = prepared.statement
        if statement is None:
            self._out += framed("I")
            return
        self._admit(statement)
        self.begin_statement()
        if portal.rows is None:
            yield from self._run_portal(portal, statement)
        rows = (portal.rows or [])[portal.sent :]
        part = rows[:most] if most else rows
        self._send_rows(part, prepared.columns, portal.formats)
        portal.sent += len(part)
        if most and len(part) == most:
            self._out += framed("s")
            return
        tag = f"SELECT {len(part)}" if isinstance(statement, syntax.Select) else portal.tag
        self._out += framed("C", text(tag))

    def _run_portal(self, portal: Portal, statement: Any) -> Waits:
        prepared = portal.prepared
        portal.rows = []
        if isinstance(statement, _DEALS):
            context = Context(self, portal.params)
            yield from self._lock_relations(statement)
            plan = self._plan(prepared.sql, statement, dict(prepared.params), context)
            try:
                portal.rows, portal.tag = yield from plan.run(context)
            except PgError:
                if isinstance(statement, syntax.Select):
                    self._send_rows(context.rows, prepared.columns, portal.formats)
                raise
        elif isinstance(statement, syntax.Show):
            portal.rows, portal.tag = [(self._show(statement),)], "SHOW"
        else:
            portal.tag = yield from self._other(statement)

    def _close(self, what: str, name: str) -> Waits:
        if what == "S":
            self.prepared.pop(name, None)
        else:
            self._portals.pop(name, None)
        self._out += framed("3")
        return
        yield

    # Rows.

    def _describe_rows(self, columns: Sequence[Typed], table: Any, formats: Sequence[int]) -> None:
        self._out += messages.described(
            [
                (one.name, table.oid if one.origin and table else 0, one.origin, one.type.oid,
                 one.type.size, _format(formats, place))
                for place, one in enumerate(columns)
            ]
        )  # fmt: skip

    def _send_rows(
        self, rows: Sequence[Any], columns: Sequence[Typed], formats: Sequence[int]
    ) -> None:
        for row in rows if columns else ():
            values = []
            for place, (value, one) in enumerate(zip(row, columns, strict=True)):
                try:
                    values.append(to_bytes(value, one.type, _format(formats, place) == 1))
                except KeyError:
                    words = f"the model of PostgreSQL has no binary form of {one.type.name}"
                    raise Unknown(words) from None
            self._out += messages.row(values)


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


def _format(formats: Sequence[int], place: int) -> int:
    if not formats:
        return 0
    return formats[place if len(formats) > 1 else 0]


def _shown(statement: syntax.Show) -> list[Typed]:
    return [Typed(TEXT, lambda c: None, name=statement.name)]


def _type(oid: int, sql: str) -> Type:
    if oid == UNKNOWN.oid:
        return UNKNOWN
    if oid not in BY_OID:
        raise Unknown(f"the model of PostgreSQL has no type {oid}: {sql}")
    return BY_OID[oid]
