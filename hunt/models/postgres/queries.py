"""The queries of a session, in messages of the simple and the extended protocol; their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.hunt.models.postgres import messages, syntax, utility
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.execution import Planner
from fencepost.hunt.models.postgres.locks import Waits
from fencepost.hunt.models.postgres.messages import INT, SHORT, framed, text
from fencepost.hunt.models.postgres.parser import statements
from fencepost.hunt.models.postgres.selection import Plan, relations
from fencepost.hunt.models.postgres.transaction import Transactions
from fencepost.hunt.models.postgres.types import BY_OID, TEXT, UNKNOWN, Type, from_bytes, to_bytes
from fencepost.hunt.models.postgres.values import Context, Typed
from fencepost.hunt.sim.unknown import Unknown

_DEALS = (syntax.Select, syntax.Insert, syntax.Update, syntax.Delete)


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


class Queries(Transactions):
    """The prepared statements and the portals of a session. `_out`: answers that are not sent."""

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self.prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._out = b""

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
