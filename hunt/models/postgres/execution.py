"""Executes INSERT, UPDATE and DELETE, and analyses every statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencepost.hunt.models.postgres import row_locks, syntax
from fencepost.hunt.models.postgres.analysis import Scope
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.heap import Key, Table, Version
from fencepost.hunt.models.postgres.locks import Waits
from fencepost.hunt.models.postgres.row_locks import NO_KEY_UPDATE, UPDATE
from fencepost.hunt.models.postgres.selection import Plan, Selects
from fencepost.hunt.models.postgres.values import Context, Typed, Value


class Planner(Selects):
    """Analyses one statement of a session."""

    def plan(self, statement: Any) -> Plan:
        match statement:
            case syntax.Select():
                return self._select(statement)
            case syntax.Insert():
                return self._insert(statement)
            case syntax.Update():
                return self._update(statement)
            case _:
                return self._delete(statement)

    # Changes.

    def _returned(self, columns: list[Typed], context: Context, row: Any, rows: list[Any]) -> None:
        if columns:
            context.row = row
            rows.append(tuple(one.value(context) for one in columns))

    def _update(self, asked: syntax.Update) -> Plan:
        session = self.session
        table = session.server.table(session, asked.table)
        scope = self._scope(table, asked.alias)
        sets = self._sets(table, asked.sets, scope)
        where = scope.condition(asked.where) if asked.where is not None else None
        columns = self._targets(asked.returning, scope)

        def run(context: Context) -> Waits:
            yield from self._subqueries(scope, context)
            rows: list[Any] = []
            done = 0
            for version in list(self._candidates(table, where, context)):
                assert version is not None
                row = yield from self._updated(table, version, sets, where, context)
                if row is None:
                    continue
                done += 1
                self._returned(columns, context, row, rows)
            return rows, f"UPDATE {done}"

        return Plan(columns, table, run, self.params)

    def _updated(
        self, table: Table, version: Version, sets: list[tuple[int, Value]],
        where: Value | None, context: Context,
    ) -> Waits:  # fmt: skip
        """Update a row, and return its values; None: it is gone, or no longer fits."""
        values = self._set(table, version, sets, context)
        strength = _strength(table, version.values, values)
        found = yield from row_locks.newest(
            self.session, table, version, strength, _most(table, sets)
        )
        if not self._fits(version, found, where, context):
            return None
        if found is not version:
            values = self._set(table, found, sets, context)
        return (yield from self._replace(table, found, values))

    def _set(
        self, table: Table, old: Version, sets: list[tuple[int, Value]], context: Context
    ) -> tuple[Any, ...]:
        """Return the values of a row after an update."""
        context.row = old.values
        values = list(old.values)
        for place, value in sets:
            values[place] = value(context)
        self._check(table, values)
        return tuple(values)

    def _sets(
        self, table: Table, given: Sequence[tuple[str, Any]], scope: Scope
    ) -> list[tuple[int, Value]]:
        found = []
        for name, expr in given:
            place = table.place(name)
            if place < 0:
                words = f'column "{name}" of relation "{table.name}" does not exist'
                raise PgError("42703", words)
            column = table.columns[place]
            found.append((place, self._stored(expr, column, scope)))
        return found

    def _stored(self, expr: Any, column: Any, scope: Scope) -> Value:
        if isinstance(expr, syntax.Default):
            expr = column.default if column.default is not None else syntax.Literal("null", "")
        value = scope.assigned(expr, column)
        if not column.length:
            return value
        limited = _limited(value, column.length)
        if self.folding is not None and isinstance(expr, syntax.Literal | syntax.Param):
            limited(self.folding)
        return limited

    def _replace(self, table: Table, old: Version, values: tuple[Any, ...]) -> Waits:
        """Add the next version of a row that is locked; those that have locked it stay."""
        session = self.session
        new = Version(values, session.xact)
        for key in table.keys:
            if [values[p] for p in key.places] != [old.values[p] for p in key.places]:
                yield from self._unique(table, key, values)
        old.xmax, old.next = session.xact, new
        old.strength = _strength(table, old.values, values)
        new.lockers = old.others(session.top)
        table.versions.append(new)
        session.touches(table)
        return new.values

    def _check(self, table: Table, values: Sequence[Any]) -> None:
        for column, value in zip(table.columns, values, strict=True):
            if value is None and column.not_null:
                words = f'null value in column "{column.name}" of relation "{table.name}" violates '
                raise PgError("23502", words + "not-null constraint")

    def _unique(self, table: Table, key: Key, values: Sequence[Any]) -> Waits:
        """Raise PgError if another row has this key; wait for a transaction that may decide it."""
        if (yield from self._other(table, key, values)) is not None:
            words = f'duplicate key value violates unique constraint "{key.name}"'
            raise PgError("23505", words)

    def _other(self, table: Table, key: Key, values: Sequence[Any]) -> Waits:
        """Return the live row with the same key, or None."""
        session = self.session
        while True:
            for one in table.with_key(key, values):
                if one.xmin.dead:
                    continue
                if one.xmin.running and one.xmin.top is not session.top:
                    yield from session.wait_for(one.xmin)
                    break
                ended = one.ended
                if ended is None:
                    return one
                if ended.running and ended.top is not session.top:
                    yield from session.wait_for(ended)
                    break
            else:
                return None

    def _delete(self, asked: syntax.Delete) -> Plan:
        session = self.session
        table = session.server.table(session, asked.table)
        scope = self._scope(table, asked.alias)
        where = scope.condition(asked.where) if asked.where is not None else None
        columns = self._targets(asked.returning, scope)

        def run(context: Context) -> Waits:
            yield from self._subqueries(scope, context)
            rows: list[Any] = []
            done = 0
            for version in list(self._candidates(table, where, context)):
                assert version is not None
                found = yield from row_locks.newest(session, table, version, UPDATE, UPDATE)
                if not self._fits(version, found, where, context):
                    continue
                found.xmax, found.next, found.strength = session.xact, None, UPDATE
                session.touches(table)
                done += 1
                self._returned(columns, context, found.values, rows)
            return rows, f"DELETE {done}"

        return Plan(columns, table, run, self.params)

    # INSERT.

    def _insert(self, asked: syntax.Insert) -> Plan:
        session = self.session
        table = session.server.table(session, asked.table)
        names = asked.columns or tuple(one.name for one in table.columns)
        places = []
        for name in names:
            if table.place(name) < 0:
                words = f'column "{name}" of relation "{table.name}" does not exist'
                raise PgError("42703", words)
            places.append(table.place(name))
        plain = self._scope(None)
        given = [self._row(table, places, row, plain) for row in asked.rows]
        source = self._select(asked.select) if asked.select is not None else None
        if source is not None:
            given = [self._from_select(table, places, source, plain)]
        scope = self._scope(table, asked.alias, excluded=asked.conflict is not None)
        conflict = asked.conflict
        keys = self._arbiters(table, conflict) if conflict is not None else []
        sets = self._sets(table, conflict.update, scope) if conflict and conflict.update else None
        where = scope.condition(conflict.where) if conflict and conflict.where else None
        columns = self._targets(asked.returning, scope)

        def run(context: Context) -> Waits:
            session.assign()
            yield from self._subqueries(plain, context)
            yield from self._subqueries(scope, context)
            rows: list[Any] = []
            done = 0
            found = [()] if source is None else (yield from source.run(context))[0]
            for selected in found:
                for row in given:
                    context.row = selected
                    values = tuple(one(context) for one in row)
                    stored = yield from self._insert_row(
                        table, values, conflict is not None, keys, sets, where, context
                    )
                    if stored is not None:
                        done += 1
                        self._returned(columns, context, stored, rows)
            return rows, f"INSERT 0 {done}"

        return Plan(columns, table, run, self.params)

    def _row(
        self, table: Table, places: list[int], row: tuple[Any, ...], scope: Scope
    ) -> list[Value]:
        if len(row) > len(places):
            raise PgError("42601", "INSERT has more expressions than target columns")
        exprs: list[Any] = [syntax.Default()] * len(table.columns)
        for place, expr in zip(places, row, strict=False):
            exprs[place] = expr
        return [self._stored(e, c, scope) for e, c in zip(exprs, table.columns, strict=True)]

    def _from_select(
        self, table: Table, places: list[int], source: Plan, scope: Scope
    ) -> list[Value]:
        values = [self._stored(syntax.Default(), one, scope) for one in table.columns]
        for number, (place, column) in enumerate(zip(places, source.columns, strict=False)):

            def value(c: Context, n: int = number) -> Any:
                return c.row[n]

            target = table.columns[place].type
            made = scope.coerced(Typed(column.type, value), target, lambda a, b: True)
            assert made is not None
            values[place] = made.value
        return values

    def _arbiters(self, table: Table, conflict: syntax.Conflict) -> list[Key]:
        if conflict.constraint:
            found = [one for one in table.keys if one.name == conflict.constraint]
            if not found:
                words = f'constraint "{conflict.constraint}" for table "{table.name}" '
                raise PgError("42704", words + "does not exist")
            return found
        if not conflict.columns:
            if conflict.update is not None:
                words = "ON CONFLICT DO UPDATE requires inference specification or constraint name"
                raise PgError("42601", words)
            return list(table.keys)
        wanted = set()
        for name in conflict.columns:
            if table.place(name) < 0:
                raise PgError("42703", f'column "{name}" does not exist')
            wanted.add(table.place(name))
        found = [one for one in table.keys if set(one.places) == wanted]
        if not found:
            words = "there is no unique or exclusion constraint matching the ON CONFLICT "
            raise PgError("42P10", words + "specification")
        return found

    def _insert_row(
        self, table: Table, values: tuple[Any, ...], on_conflict: bool, keys: list[Key],
        sets: list[tuple[int, Value]] | None, where: Value | None, context: Context,
    ) -> Waits:  # fmt: skip
        """Insert a row, or do what ON CONFLICT says; return the stored row, or None."""
        session = self.session
        self._check(table, values)
        while on_conflict:
            other: Version | None = None
            for key in keys:
                other = yield from self._other(table, key, values)
                if other is not None:
                    break
            if other is None:
                break
            if not other.visible(session.snapshot(), session.top) and (
                session.isolation != "read committed"
            ):
                raise PgError("40001", "could not serialize access due to concurrent update")
            if sets is None:
                return None
            if (
                other.xmin.top is session.top
                and other.xmin is session.xact
                and (other in session.inserted)
            ):
                words = "ON CONFLICT DO UPDATE command cannot affect row a second time"
                raise PgError("21000", words)
            context.excluded = values
            done = yield from row_locks.lock(session, table, other, _most(table, sets))
            if done != row_locks.LOCKED:
                continue  # it has changed meanwhile
            context.row = other.values
            if where is not None and where(context) is not True:
                return None
            row = yield from self._replace(table, other, self._set(table, other, sets, context))
            session.inserted.add(table.versions[-1])
            return row
        for key in table.keys:
            yield from self._unique(table, key, values)
        made = Version(values, session.xact)
        table.versions.append(made)
        session.inserted.add(made)
        session.touches(table)
        return values


def _limited(value: Value, length: int) -> Value:
    def checked(c: Context) -> Any:
        found = value(c)
        if found is not None and len(found) > length:
            raise PgError("22001", f"value too long for type character varying({length})")
        return found

    return checked


def _key_places(table: Table) -> set[int]:
    return {place for key in table.keys for place in key.places}


def _strength(table: Table, old: Sequence[Any], new: Sequence[Any]) -> int:
    """Return how strongly an update locks a row: whether it changes a unique key."""
    changed = any(old[place] != new[place] for place in _key_places(table))
    return UPDATE if changed else NO_KEY_UPDATE


def _most(table: Table, sets: list[tuple[int, Value]]) -> int:
    """Return how strongly an update locks a row before its new values are known."""
    return UPDATE if _key_places(table) & {place for place, _ in sets} else NO_KEY_UPDATE
