"""Registers in PostgreSQL: a row each, and one UPDATE with the guard as its condition."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, LiteralString

from fencepost.workloads.contract.lock import Failed, Grant, Indeterminate
from fencepost.workloads.contract.resource import register
from fencepost.workloads.contract.store import Opening, Store
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    import psycopg
    from psycopg import errors
else:
    psycopg, errors = Deferred("psycopg"), Deferred("psycopg.errors")

_TABLE = """
CREATE TABLE IF NOT EXISTS resource
  (name text PRIMARY KEY, value text, version bigint NOT NULL, highest bigint NOT NULL)
"""
_CONNECT_S = 5


class PostgresRegister:
    def __init__(self, at: Opening) -> None:
        load(psycopg, errors)
        self._address = at.env.address(at.storage)
        self._guard = at.guard
        self._rule = at.rule
        self._timeout_s = at.timeout_s
        self._connection: psycopg.Connection[Any] | None = None
        # Resources whose rows are known to exist, by this connection.
        self._rows: set[str] = set()

    def read(self, resource: str) -> tuple[Any, int]:
        row = self._execute(resource, "SELECT value, version FROM resource WHERE name = %(name)s")
        assert row is not None
        return row[0], int(row[1])

    def write(self, resource: str, value: Any, version: int, grant: Grant | None) -> int:
        self._guard.require(grant)
        row = self._execute(
            resource,
            "UPDATE resource SET value = %(value)s, version = version + 1, "
            "highest = greatest(highest, coalesce(%(token)s::bigint, highest)) "
            "WHERE name = %(name)s AND " + self._rule.text + " RETURNING version",
            value=value,
            version=version,
            token=grant.token if grant else None,
        )
        if row is None:
            raise Failed("refused", f"the guard ({self._guard.name}) matched no row")
        return int(row[0])

    def _execute(self, resource: str, query: LiteralString, **values: Any) -> Any:
        name = register(resource)
        try:
            connection = self._connection = self._connection or self._connect()
            self._provide(connection, name)
        except psycopg.Error as error:
            self.close()
            raise Failed("unreachable", f"{self._address[0]}: {error}") from error
        try:
            return connection.execute(query, {"name": name, **values}).fetchone()
        except psycopg.Error as error:
            self.close()
            raise Indeterminate("timeout", f"{self._address[0]}: {error}") from error

    def _connect(self) -> psycopg.Connection[Any]:
        host, port = self._address
        connection = psycopg.connect(
            host=host,
            port=port,
            user="postgres",
            autocommit=True,
            connect_timeout=_CONNECT_S,
            tcp_user_timeout=int(self._timeout_s * 1000),
            keepalives_idle=1,
            keepalives_interval=1,
            keepalives_count=int(self._timeout_s),
        )
        # Two clients create the same table at once: one is refused, and the table exists.
        with suppress(errors.UniqueViolation, errors.DuplicateTable):
            connection.execute(_TABLE)
        return connection

    def _provide(self, connection: psycopg.Connection[Any], name: str) -> None:
        """Insert the row of a register that this connection has not used before."""
        if name not in self._rows:
            row = "INSERT INTO resource VALUES (%s, NULL, 0, -1) ON CONFLICT DO NOTHING"
            connection.execute(row, [name])
            self._rows.add(name)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._rows.clear()
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()


STORE = Store(
    "postgres",
    "a row in a separate PostgreSQL server",
    PostgresRegister,
    kind="postgres",
    language="sql",
)
