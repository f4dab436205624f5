"""Registers in MariaDB: a row each, and one UPDATE with the guard as its condition."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Failed, Grant, Indeterminate
from fencepost.workloads.contract.resource import register
from fencepost.workloads.contract.store import Opening, Store
from fencepost.workloads.transport.deferred import Deferred, load
from fencepost.workloads.transport.mariadb_link import connected

if TYPE_CHECKING:
    import pymysql
else:
    pymysql = Deferred("pymysql")

_TABLE = """
CREATE TABLE IF NOT EXISTS resource
  (name VARCHAR(200) COLLATE utf8mb4_bin PRIMARY KEY, value LONGTEXT, version BIGINT NOT NULL,
   highest BIGINT NOT NULL)
"""
_ROW = "INSERT IGNORE INTO resource VALUES (%(name)s, NULL, 0, -1)"


class MariadbRegister:
    def __init__(self, at: Opening) -> None:
        load(pymysql)
        self._address = at.env.address(at.storage)
        self._guard = at.guard
        self._rule = at.rule
        self._timeout_s = at.timeout_s
        self._connection: pymysql.Connection[Any] | None = None
        # Resources whose rows are known to exist, by this connection.
        self._rows: set[str] = set()

    def read(self, resource: str) -> tuple[Any, int]:
        query = "SELECT value, version FROM resource WHERE name = %(name)s"
        _, (value, version) = self._execute(resource, query)
        return value, int(version)

    def write(self, resource: str, value: Any, version: int, grant: Grant | None) -> int:
        self._guard.require(grant)
        found, _ = self._execute(
            resource,
            "UPDATE resource SET value = %(value)s, "
            "highest = GREATEST(highest, COALESCE(%(token)s, highest)), "
            "version = LAST_INSERT_ID(version + 1) "
            "WHERE name = %(name)s AND " + self._rule.text,
            value=value,
            version=version,
            token=grant.token if grant else None,
        )
        if not found:
            raise Failed("refused", f"the guard ({self._guard.name}) matched no row")
        return found

    def _execute(self, resource: str, query: str, **values: Any) -> tuple[int, Any]:
        """Return the version that an UPDATE assigned, 0 if it matched no row; and the row of a
        SELECT."""
        given: Mapping[str, Any] = {"name": register(resource), **values}
        try:
            connection = self._connection = self._connection or self._connect()
            self._provide(connection, given)
        except (OSError, pymysql.MySQLError) as error:
            self.close()
            raise Failed("unreachable", f"{self._address[0]}: {error}") from error
        try:
            with connection.cursor() as cursor:
                count = cursor.execute(query, given)
                return (int(cursor.lastrowid or 0) if count else 0), cursor.fetchone()
        except (OSError, pymysql.MySQLError) as error:
            self.close()
            raise Indeterminate("timeout", f"{self._address[0]}: {error}") from error

    def _connect(self) -> pymysql.Connection[Any]:
        connection = connected(self._address, self._timeout_s)
        try:
            with connection.cursor() as cursor:
                cursor.execute(_TABLE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _provide(self, connection: pymysql.Connection[Any], given: Mapping[str, Any]) -> None:
        """Insert the row of a register that this connection has not used before."""
        if given["name"] not in self._rows:
            with connection.cursor() as cursor:
                cursor.execute(_ROW, given)
            self._rows.add(given["name"])

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._rows.clear()
        if connection is not None:
            with suppress(OSError, pymysql.MySQLError):
                connection.close()


STORE = Store(
    "mariadb",
    "a row in a separate MariaDB server",
    MariadbRegister,
    kind="mariadb",
    language="sql",
)
