"""Executes SELECT, in the isolation level Read Committed.

A statement reads the rows of its snapshot. A row that another transaction is changing is waited
for; if it was changed, the statement looks at the new version again (EvalPlanQual).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from fencepost.hunt.models.postgres import locks, row_locks, syntax
from fencepost.hunt.models.postgres.analysis import Scope
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.functions import AGGREGATES
from fencepost.hunt.models.postgres.heap import Table, Version
from fencepost.hunt.models.postgres.locks import Waits
from fencepost.hunt.models.postgres.types import INT8, Type, implicit
from fencepost.hunt.models.postgres.values import Context, Typed, Value


@dataclass
class Plan:
    """An analysed statement. `run` executes it: a generator that returns the rows and a tag."""

    columns: list[Typed]
    table: Table | None
    run: Callable[[Context], Waits]
    params: dict[int, Type]


def relations(statement: Any) -> Iterator[tuple[str, int]]:
    """Yield the tables that a statement uses, and the modes in which it locks them before it is
    analysed."""
    match statement:
        case syntax.Select():
            if statement.table:
                mode = locks.ROW_SHARE if statement.locking else locks.ACCESS_SHARE
                yield statement.table, mode
        case syntax.Insert() | syntax.Update() | syntax.Delete():
            yield statement.table, locks.ROW_EXCLUSIVE
    yield from _within(statement)


def _within(thing: Any) -> Iterator[tuple[str, int]]:
    """Yield the tables of the subqueries within a statement or an expression."""
    parts = thing if isinstance(thing, tuple) else ()
    if is_dataclass(thing):
        parts = tuple(getattr(thing, one.name) for one in fields(thing))
    for part in parts:
        yield from relations(part) if isinstance(part, syntax.Select) else _within(part)


class Selects:
    """Analyses the SELECTs of one statement of a session."""

    def __init__(
        self, session: Any, sql: str, params: dict[int, Type], folding: Context | None = None
    ) -> None:
        self.session = session
        self.folding = folding
        self.sql = sql
        self.params = params

    def _scope(self, table: Table | None, alias: str = "", excluded: bool = False) -> Scope:
        scope = Scope(self.sql, self.params, table, alias, excluded)
        scope.subquery_type, scope.folding = self._subquery_type, self.folding
        return scope

    def _subquery_type(self, expr: syntax.Subquery) -> Type:
        plan = self._select(expr.select)
        if len(plan.columns) != 1:
            raise PgError("42601", "subquery must return only one column")
        return plan.columns[0].type

    def _subqueries(self, scope: Scope, context: Context) -> Waits:
        """Evaluate the subqueries of a statement before its rows."""
        for expr, slot in scope.subqueries:
            rows, _ = yield from self._select(expr.select).run(context)
            if expr.exists:
                slot[0] = bool(rows)
            elif len(rows) > 1:
                words = "more than one row returned by a subquery used as an expression"
                raise PgError("21000", words)
            else:
                slot[0] = rows[0][0] if rows else None

    def _targets(self, targets: Sequence[syntax.Target], scope: Scope) -> list[Typed]:
        found: list[Typed] = []
        for target in targets:
            if isinstance(target.value, syntax.Star):
                if scope.table is None:
                    raise PgError("42601", "SELECT * with no tables specified is not valid")
                names = [syntax.Column(one.name) for one in scope.table.columns]
                found += [scope.of(one) for one in names]
                continue
            one = scope.settled(scope.of(target.value))
            one.name = target.alias or one.name
            found.append(one)
        return found

    # SELECT.

    def _select(self, asked: syntax.Select) -> Plan:
        session = self.session
        table = session.server.table(session, asked.table) if asked.table else None
        scope = self._scope(table, asked.alias)
        if any(_aggregates(one.value) for one in asked.targets):
            return self._aggregate(asked, scope)
        columns = self._targets(asked.targets, scope)
        where = scope.condition(asked.where) if asked.where is not None else None
        order = [(self._sorted(one, columns, scope), down) for one, down in asked.order]
        limit = self._count(asked.limit, scope)
        offset = self._count(asked.offset, scope)

        def run(context: Context) -> Waits:
            yield from self._subqueries(scope, context)
            most = limit(context) if limit is not None else None
            skipped = (offset(context) or 0) if offset is not None else 0
            rows: list[tuple[Any, ...]] = []
            context.rows = rows
            candidates = self._candidates(table, where, context)
            if order:
                candidates = iter(_in_order(list(candidates), order, context))
            if most == 0:
                candidates = iter(())
            for version in candidates:
                context.row = version.values if version else ()
                if asked.locking is not None and version is not None:
                    assert table is not None, "a version is a table's"
                    found = yield from self._locked(table, version, asked.locking, where, context)
                    if found is None:
                        continue
                    context.row = found.values
                if skipped:
                    skipped -= 1
                    continue
                rows.append((yield from self._projected(columns, context)))
                if most is not None and len(rows) >= most:
                    break
            return rows, f"SELECT {len(rows)}"

        return Plan(columns, table, run, self.params)

    def _sorted(self, expr: Any, columns: list[Typed], scope: Scope) -> Value:
        if isinstance(expr, syntax.Literal) and expr.kind == "integer":
            return columns[int(expr.value) - 1].value
        if isinstance(expr, syntax.Column) and not expr.table:
            for one in columns:
                if one.name == expr.name:
                    return one.value
        return scope.settled(scope.of(expr)).value

    def _count(self, expr: Any, scope: Scope) -> Value | None:
        if expr is None:
            return None
        found = scope.coerced(scope.of(expr), INT8, implicit)
        if found is None:
            raise scope.lacks("this LIMIT")
        return found.value

    def _aggregate(self, asked: syntax.Select, scope: Scope) -> Plan:
        _session, table = self.session, scope.table
        if asked.locking is not None:
            raise PgError("0A000", "FOR UPDATE is not allowed with aggregate functions")
        made: list[tuple[str, Typed | None]] = []
        columns: list[Typed] = []
        for target in asked.targets:
            call = target.value
            if not _aggregates(call):
                raise scope.lacks("expression of an aggregate")
            one = None if call.star else scope.of(call.args[0])
            made.append((call.name, one))
            type_ = INT8 if call.name in ("count", "sum") or one is None else one.type
            columns.append(Typed(type_, lambda c: None, name=target.alias or call.name))
        where = scope.condition(asked.where) if asked.where is not None else None

        def run(context: Context) -> Waits:
            yield from self._subqueries(scope, context)
            found: list[list[Any]] = [[] for _ in made]
            for version in self._candidates(table, where, context):
                context.row = version.values if version else ()
                for values, (_, one) in zip(found, made, strict=True):
                    value = True if one is None else one.value(context)
                    if value is not None:
                        values.append(value)
            pairs = zip(made, found, strict=True)
            return [tuple(_summed(name, values) for (name, _), values in pairs)], "SELECT 1"

        return Plan(columns, table, run, self.params)

    def _candidates(
        self, table: Table | None, where: Value | None, context: Context
    ) -> Iterator[Version | None]:
        """Yield the rows of the snapshot that fulfil the condition."""
        if table is None:
            if where is None or where(context) is True:
                yield None
            return
        session = self.session
        snapshot, me = session.snapshot(), session.top
        for version in list(table.versions):
            if version.visible(snapshot, me):
                context.row = version.values
                if where is None or where(context) is True:
                    yield version

    def _projected(self, columns: list[Typed], context: Context) -> Waits:
        found = []
        for one in columns:
            if one.waits is None:
                found.append(one.value(context))
                continue
            function, args = one.waits
            given = [arg.value(context) for arg in args]
            if None in given:
                found.append(None)
            else:
                found.append((yield from function.call(self.session, *given)))
        return tuple(found)

    # Row locks.

    def _locked(
        self, table: Table, version: Version, asked: syntax.Locking, where: Value | None,
        context: Context,
    ) -> Waits:  # fmt: skip
        """Lock a row, and return its newest version; None: it is gone, or no longer fits."""
        strength, policy = asked.strength, asked.policy
        found = yield from row_locks.newest(
            self.session, table, version, strength, strength, policy
        )
        return found if self._fits(version, found, where, context) else None

    def _fits(
        self, version: Version, found: Version | None, where: Value | None, context: Context
    ) -> bool:
        """Whether a row that has changed since it was read fulfils the condition still."""
        if found is None or found is version or where is None:
            return found is not None
        context.row = found.values
        return where(context) is True


def _aggregates(expr: Any) -> bool:
    return isinstance(expr, syntax.Call) and expr.name in AGGREGATES


def _summed(name: str, values: list[Any]) -> Any:
    if name == "count":
        return len(values)
    if not values:
        return None
    return max(values) if name == "max" else min(values) if name == "min" else sum(values)


def _in_order(found: list[Any], order: list[tuple[Value, bool]], context: Context) -> list[Any]:
    for value, down in reversed(order):

        def key(version: Any, v: Value = value) -> Any:
            context.row = version.values if version else ()
            one = v(context)
            return (one is None, 0 if one is None else one)

        found.sort(key=key, reverse=down)
    return found
