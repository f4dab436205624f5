"""Parses SQL statements. A statement that the model lacks raises Unknown with the query."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fencepost.hunt.models.postgres import syntax
from fencepost.hunt.models.postgres.definitions import Definitions
from fencepost.hunt.models.postgres.syntax import Expr, Locking, Target

_STRENGTHS = (("no", "key", "update"), ("key", "share"), ("update",), ("share",))
_JOINS = ("join", "left", "inner", "cross", "right")
_ORDER = {"no": 2, "key": 0, "update": 3, "share": 1}


@lru_cache(2000)
def statements(sql: str) -> tuple[Any, ...]:
    """Return the statements of a query.

    Raises:
        PgError: it is no SQL.
        Unknown: the model lacks it.
    """
    return tuple(_Parser(sql).all())


class _Parser(Definitions):
    def all(self) -> list[Any]:
        found: list[Any] = []
        while True:
            while self.take(";"):
                pass
            if self.token.kind == "end":
                return found
            found.append(self._statement())
            if not self.at(";") and self.token.kind != "end":
                raise self.error()

    def _statement(self) -> Any:
        token = self.token
        if token.kind != "word":
            raise self.error()
        match token.value:
            case "select":
                return self.select()
            case "insert":
                return self._insert()
            case "update":
                return self._update()
            case "delete":
                return self._delete()
            case _:
                return self.other()

    # SELECT.

    def select(self) -> syntax.Select:
        self.need("select")
        if self.at("distinct"):
            raise self.lacks("DISTINCT")
        targets = () if self.at("from") else self._targets()
        table = alias = ""
        if self.take("from"):
            table, alias = self._from()
        where = self.expr() if self.take("where") else None
        if any(self.at(word) for word in ("group", "having", "union", "window", "intersect")):
            raise self.lacks(self.token.text.upper())
        order = self._order() if self.take("order", "by") else ()
        limit = offset = locking = None
        while True:
            if self.take("limit"):
                limit = None if self.take("all") else self.expr()
            elif self.take("offset"):
                offset = self.expr()
                self.take("rows")
            elif self.take("for"):
                locking = self._locking()
            else:
                break
        return syntax.Select(targets, table, alias, where, order, limit, offset, locking)

    def _from(self) -> tuple[str, str]:
        if self.at("("):
            raise self.lacks("subquery in FROM")
        table = self.relation()
        if self.at("("):
            raise self.lacks("function in FROM")
        alias = self._alias()
        if self.at(",") or any(self.at(word) for word in _JOINS):
            raise self.lacks("join")
        return table, alias

    def _alias(self) -> str:
        if self.take("as"):
            return self.name()
        if any(self.at(word) for word in _JOINS):
            return ""
        return self.name() if self.named else ""

    def _targets(self) -> tuple[Target, ...]:
        found = [self._target()]
        while self.take(","):
            found.append(self._target())
        return tuple(found)

    def _target(self) -> Target:
        if self.take("*"):
            return Target(syntax.Star())
        value = self.expr()
        if self.take("as"):
            return Target(value, self.next().value)
        token = self.token
        if token.kind == "quoted" or (
            token.kind == "word"
            and token.value
            not in (
                "from",
                "where",
                "for",
                "order",
                "limit",
                "offset",
                "group",
                "union",
                "having",
                "returning",
                "on",
            )
        ):
            return Target(value, self.next().value)
        return Target(value)

    def _order(self) -> tuple[tuple[Expr, bool], ...]:
        found: list[tuple[Expr, bool]] = []
        while True:
            value = self.expr()
            descending = self.take("desc")
            if not descending:
                self.take("asc")
            if self.at("nulls"):
                raise self.lacks("NULLS FIRST")
            found.append((value, descending))
            if not self.take(","):
                return tuple(found)

    def _locking(self) -> Locking:
        for words in _STRENGTHS:
            if self.take(*words):
                if self.take("of"):
                    self.names()
                policy = "wait"
                if self.take("skip", "locked"):
                    policy = "skip"
                elif self.take("nowait"):
                    policy = "nowait"
                return Locking(_ORDER[words[0]], policy)
        raise self.error()

    # Changes.

    def _returning(self) -> tuple[Target, ...]:
        return self._targets() if self.take("returning") else ()

    def _insert(self) -> syntax.Insert:
        self.need("insert", "into")
        table = self.relation()
        alias = self.name() if self.take("as") else ""
        columns: tuple[str, ...] = ()
        if self.at("("):
            columns = self.listed()
        rows: list[tuple[Expr, ...]] = []
        select = None
        if self.take("default", "values"):
            rows.append(())
        elif self.at("select"):
            select = self.select()
        else:
            self.need("values")
            rows.append(self._row())
            while self.take(","):
                rows.append(self._row())
        conflict = self._conflict() if self.take("on", "conflict") else None
        return syntax.Insert(
            table, alias, columns, tuple(rows), select, conflict, self._returning()
        )

    def _row(self) -> tuple[Expr, ...]:
        self.need("(")
        found = [self.expr()]
        while self.take(","):
            found.append(self.expr())
        self.need(")")
        return tuple(found)

    def _conflict(self) -> syntax.Conflict:
        columns: tuple[str, ...] = ()
        constraint = ""
        if self.at("("):
            columns = self.listed()
            if self.at("where"):
                raise self.lacks("partial index")
        elif self.take("on", "constraint"):
            constraint = self.name()
        self.need("do")
        if self.take("nothing"):
            return syntax.Conflict(columns, constraint)
        self.need("update", "set")
        sets = self._sets()
        where = self.expr() if self.take("where") else None
        return syntax.Conflict(columns, constraint, sets, where)

    def _sets(self) -> tuple[tuple[str, Expr], ...]:
        found: list[tuple[str, Expr]] = []
        while True:
            if self.at("("):
                names = self.listed()
                self.need("=")
                self.take("row")
                values = self._row()
                if len(names) != len(values):
                    raise self.lacks("this SET")
                found += zip(names, values, strict=True)
            else:
                name = self.name()
                self.need("=")
                found.append((name, self.expr()))
            if not self.take(","):
                return tuple(found)

    def _update(self) -> syntax.Update:
        self.need("update")
        self.take("only")
        table = self.relation()
        alias = self._alias()
        self.need("set")
        sets = self._sets()
        if self.at("from"):
            raise self.lacks("UPDATE ... FROM")
        where = self.expr() if self.take("where") else None
        return syntax.Update(table, alias, sets, where, self._returning())

    def _delete(self) -> syntax.Delete:
        self.need("delete", "from")
        table = self.relation()
        alias = self._alias()
        if self.at("using"):
            raise self.lacks("DELETE ... USING")
        where = self.expr() if self.take("where") else None
        return syntax.Delete(table, alias, where, self._returning())
