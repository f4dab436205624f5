"""Parses the statements that define tables, end transactions and change settings."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.postgres import syntax
from fencepost.hunt.models.postgres.expressions import Expressions
from fencepost.hunt.models.postgres.syntax import Transaction

_SERIALS = {"serial": "integer", "bigserial": "bigint", "smallserial": "smallint",
            "serial4": "integer", "serial8": "bigint"}  # fmt: skip
_MODES = {
    ("access", "share"): 1, ("row", "share"): 2, ("row", "exclusive"): 3,
    ("share", "update", "exclusive"): 4, ("share", "row", "exclusive"): 6, ("share",): 5,
    ("exclusive",): 7, ("access", "exclusive"): 8,
}  # fmt: skip


class Definitions(Expressions):
    """The part of the parser for all statements but SELECT, INSERT, UPDATE and DELETE."""

    def other(self) -> Any:
        word = self.token.value
        known = {
            "create": self._create, "drop": self._drop, "truncate": self._truncate,
            "lock": self._lock, "set": self._set, "reset": self._reset, "show": self._show,
            "deallocate": self._deallocate, "discard": self._discard, "close": self._close,
            "unlisten": self._unlisten,
        }.get(word)  # fmt: skip
        if known is not None:
            self.next()
            return known()
        found = self._transaction()
        if found is None:
            if word in _STATEMENTS:
                raise self.lacks(f"statement {word.upper()}")
            raise self.error()
        return found

    # Transactions.

    def _transaction(self) -> Transaction | None:
        if self.take("start", "transaction"):
            return Transaction("begin", isolation=self._modes(), tag="START TRANSACTION")
        if self.take("begin"):
            return Transaction("begin", isolation=self._modes(), tag="BEGIN")
        if self.take("commit") or self.take("end"):
            self._noise()
            return Transaction("commit")
        if self.take("rollback") or self.take("abort"):
            self._noise()
            if self.take("to"):
                self.take("savepoint")
                return Transaction("rollback to", self.name())
            return Transaction("rollback")
        if self.take("savepoint"):
            return Transaction("savepoint", self.name())
        if self.take("release"):
            self.take("savepoint")
            return Transaction("release", self.name())
        return None

    def _noise(self) -> None:
        if not self.take("work"):
            self.take("transaction")
        if self.at("prepared") or self.at("and"):
            raise self.lacks(self.token.text.upper())

    def _modes(self) -> str:
        if not self.take("work"):
            self.take("transaction")
        isolation = ""
        while self.token.kind != "end" and not self.at(";"):
            if self.take("isolation", "level"):
                if self.take("repeatable", "read"):
                    isolation = "repeatable read"
                elif self.take("read", "committed") or self.take("read", "uncommitted"):
                    isolation = "read committed"
                else:
                    raise self.lacks(f"isolation level {self.token.text}")
            elif not (self.take("read", "write") or self.take(",")):
                if self.at("read") or self.at("deferrable"):
                    raise self.lacks("READ ONLY")
                raise self.error()
        return isolation

    # Settings.

    def _set(self) -> Any:
        local = self.take("local")
        if not local:
            self.take("session")
        if self.at("transaction") or self.at("characteristics"):
            raise self.lacks("SET TRANSACTION")
        name = self._setting()
        if name == "time" and self.take("zone"):
            name = "timezone"
        elif not self.take("to"):
            self.need("=")
        if self.take("default"):
            return syntax.Set(name, None, local)
        value = "-" if self.take("-") else ""
        value += self.next().value
        if self.at(","):
            raise self.lacks("list of values")
        return syntax.Set(name, value, local)

    def _setting(self) -> str:
        name = self.next().value
        while self.take("."):
            name += "." + self.next().value
        return name

    def _reset(self) -> Any:
        return syntax.Set(self._setting(), None)

    def _show(self) -> Any:
        if self.take("transaction", "isolation", "level"):
            return syntax.Show("transaction_isolation")
        return syntax.Show(self._setting())

    def _deallocate(self) -> Any:
        self.take("prepare")
        if self.take("all"):
            return syntax.Utility("DEALLOCATE ALL", deallocate="*")
        return syntax.Utility("DEALLOCATE", deallocate=self.name())

    def _discard(self) -> Any:
        self.need("all")
        return syntax.Utility("DISCARD ALL", deallocate="*", discard=True)

    def _close(self) -> Any:
        self.need("all")
        return syntax.Utility("CLOSE CURSOR ALL")

    def _unlisten(self) -> Any:
        self.need("*")
        return syntax.Utility("UNLISTEN")

    # Tables.

    def _absent(self) -> bool:
        return self.take("if", "not", "exists")

    def _there(self) -> bool:
        return self.take("if", "exists")

    def _create(self) -> Any:
        unique = self.take("unique")
        if self.take("index"):
            if_absent = self._absent()
            name = "" if self.at("on") else self.name()
            self.need("on")
            table = self.relation()
            if self.at("using"):
                raise self.lacks("USING")
            columns = self.listed()
            if self.at("where"):
                raise self.lacks("partial index")
            return syntax.CreateIndex(name, table, columns, unique, if_absent)
        if self.take("sequence"):
            return self._sequence()
        self.take("unlogged")
        if not self.take("table"):
            raise self.lacks(f"CREATE {self.token.text.upper()}")
        return self._table()

    def _sequence(self) -> Any:
        if_absent = self._absent()
        name = self.relation()
        start = 1
        if self.take("start"):
            self.take("with")
            start = int(self.next().value)
        if self.token.kind != "end" and not self.at(";"):
            raise self.lacks("option of a sequence")
        return syntax.CreateSequence(name, if_absent, start)

    def _table(self) -> Any:
        if_absent = self._absent()
        name = self.relation()
        columns: list[syntax.ColumnDef] = []
        keys: list[tuple[str, tuple[str, ...], bool]] = []
        self.need("(")
        while True:
            label = self.name() if self.take("constraint") else ""
            if self.take("primary", "key"):
                keys.append((label, self.listed(), True))
            elif self.take("unique"):
                keys.append((label, self.listed(), False))
            elif label or self.at("check") or self.at("foreign") or self.at("exclude"):
                raise self.lacks("constraint")
            else:
                columns.append(self._column(keys))
            if not self.take(","):
                break
        self.need(")")
        if self.token.kind != "end" and not self.at(";"):
            raise self.lacks("option of a table")
        return syntax.CreateTable(name, if_absent, tuple(columns), tuple(keys))

    def _column(self, keys: list[tuple[str, tuple[str, ...], bool]]) -> syntax.ColumnDef:
        name = self.name()
        serial = self.token.value in _SERIALS
        type_, length = (_SERIALS[self.next().value], 0) if serial else self.type()
        not_null = serial
        default = None
        while True:
            if self.take("primary", "key"):
                keys.append(("", (name,), True))
            elif self.take("unique"):
                keys.append(("", (name,), False))
            elif self.take("not", "null"):
                not_null = True
            elif self.take("null"):
                pass
            elif self.take("default"):
                default = self.expr()
            elif any(self.at(word) for word in ("references", "check", "generated", "collate")):
                raise self.lacks(self.token.text.upper())
            else:
                return syntax.ColumnDef(name, type_, length, not_null, default, serial)

    def _drop(self) -> Any:
        what = self.next().value
        if what not in ("table", "sequence"):
            raise self.lacks(f"DROP {what.upper()}")
        if_there = self._there()
        names = [self.relation()]
        while self.take(","):
            names.append(self.relation())
        self.take("cascade")
        self.take("restrict")
        return syntax.Drop(what, tuple(names), if_there)

    def _truncate(self) -> Any:
        self.take("table")
        return syntax.Truncate(self.names())

    def _lock(self) -> Any:
        self.take("table")
        names = self.names()
        mode = 8
        if self.take("in"):
            for words, number in _MODES.items():
                if self.take(*words, "mode"):
                    mode = number
                    break
            else:
                raise self.error()
        return syntax.LockTable(names, mode, self.take("nowait"))


_STATEMENTS = frozenset(
    {
        "alter", "analyze", "call", "checkpoint", "cluster", "comment", "copy", "declare", "do",
        "execute", "explain", "fetch", "grant", "import", "listen", "load", "merge", "move",
        "notify", "prepare", "reassign", "refresh", "reindex", "revoke", "security", "table",
        "vacuum", "values", "with",
    }
)  # fmt: skip
