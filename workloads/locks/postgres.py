"""Locks of one PostgreSQL server: an advisory lock, or a row lock held by a transaction.

Both last as long as their connection; there is no lease that a clock could end. So that a client
that is cut off does not hold them for ever, the server probes silent connections: after the TTL,
and then a second time (tcp_keepalives_idle, _interval, _count). A paused client's kernel answers
such probes, and the client keeps the lock. Its deadline is the TTL from when the last answered
query was sent: the server drops no connection before that, unless it crashes. The token is drawn
from a sequence after the grant, and a sequence is never rolled back.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import WAITS, Option
from fencepost.workloads.locks.keepalive import Keepalive
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    import psycopg
    from psycopg import errors
else:
    psycopg, errors = Deferred("psycopg"), Deferred("psycopg.errors")

_TABLES = """
CREATE SEQUENCE IF NOT EXISTS fencepost_token;
CREATE TABLE IF NOT EXISTS fencepost_lock (name text PRIMARY KEY);
"""


class PostgresLock:
    """`options`: mode (advisory, row), token (none, sequence), wait_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        load(psycopg, errors)
        self._env = env
        self._node = nodes[0]
        self._options = options
        # The connection holds the lock while it exists.
        self._keepalive = Keepalive(env, renews=False)
        self._connection: psycopg.Connection[Any] | None = None
        # Locks whose rows are known to exist, by this connection.
        self._rows: set[str] = set()

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        try:
            connection = self._connection = self._connection or self._connect(ttl_ns)
            self._provide(connection, name)
        except psycopg.Error as error:
            self._drop()
            raise Failed("unreachable", f"{self._node}: {error}") from error
        try:
            self._lock(connection, name)
            sent = self._env.now()
            token = self._token(connection)
        except errors.LockNotAvailable as error:
            self._end(connection)
            raise Failed(
                "not-granted", f"not its turn within {self._options['wait_ms']} ms"
            ) from error
        except psycopg.Error as error:
            # If the lock was granted it goes with the connection.
            self._drop()
            raise Failed("not-granted", f"{self._node}: {error}") from error
        secret = self._env.random.randbytes(8).hex()
        grant = Grant(name, token, sent + ttl_ns, secret)
        self._keepalive.watch(secret, ttl_ns, sent + ttl_ns, lambda: self._beat(ttl_ns))
        return grant

    def _connect(self, ttl_ns: int) -> psycopg.Connection[Any]:
        host, port = self._env.address(self._node)
        timeout_ms = self._options["node_timeout_ms"]
        idle_s = max(1, ttl_ns // 1_000_000_000)
        connection = psycopg.connect(
            host=host,
            port=port,
            user="postgres",
            autocommit=True,
            connect_timeout=max(2, timeout_ms // 1000),
            # A server that is gone silently ends the connection on this side as well.
            tcp_user_timeout=timeout_ms,
            keepalives_idle=1,
            keepalives_interval=1,
            keepalives_count=2,
            options=f"-c tcp_keepalives_idle={idle_s} -c tcp_keepalives_interval=1 "
            f"-c tcp_keepalives_count=1 -c lock_timeout={self._options['wait_ms']} "
            # Probes are not sent while an answer is pending; the default timeout then is a quarter
            # hour, in which a cut-off client's transaction keeps the lock.
            f"-c tcp_user_timeout={ttl_ns // 1_000_000 + 1000} "
            # A backend that waits for a lock checks whether its client still exists.
            "-c client_connection_check_interval=500",
        )
        # Two clients create the same table at once: one is refused, and the table exists.
        with suppress(errors.UniqueViolation, errors.DuplicateTable):
            connection.execute(_TABLES)
        return connection

    def _provide(self, connection: psycopg.Connection[Any], name: str) -> None:
        """Insert the row of a lock that this connection has not asked for before."""
        if name not in self._rows:
            row = "INSERT INTO fencepost_lock VALUES (%s) ON CONFLICT DO NOTHING"
            connection.execute(row, [name])
            self._rows.add(name)

    def _lock(self, connection: psycopg.Connection[Any], name: str) -> None:
        if self._options["mode"] == "advisory":
            connection.execute("SELECT pg_advisory_lock(%s)", [_number(name)])
        else:
            connection.execute("BEGIN")
            connection.execute("SELECT FROM fencepost_lock WHERE name = %s FOR UPDATE", [name])

    def _token(self, connection: psycopg.Connection[Any]) -> int | None:
        if self._options["token"] == "none":
            connection.execute("SELECT 1")
            return None
        row = connection.execute("SELECT nextval('fencepost_token')").fetchone()
        assert row is not None
        return int(row[0])

    def _beat(self, ttl_ns: int) -> int:
        sent = self._env.now()
        connection = self._connection
        if connection is None:
            raise Failed("not-held", "the connection is closed, and the lock gone with it")
        try:
            connection.execute("SELECT 1")
        except psycopg.Error as error:
            raise Failed("not-held", f"the connection is broken: {error}") from error
        return sent + ttl_ns

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        """Prove that the connection is alive, and the lock with it. This extends no deadline at the
        server."""
        try:
            return replace(grant, deadline=self._beat(ttl_ns))
        except Failed as error:
            # The lock went with its connection, long before its deadline.
            self._env.lost(grant.secret, error.text)
            raise

    def release(self, grant: Grant) -> None:
        self._keepalive.forget(grant.secret)
        connection = self._connection
        if connection is None:
            raise Failed("not-held", "the connection is closed, and the lock gone with it")
        try:
            if self._options["mode"] == "advisory":
                row = connection.execute(
                    "SELECT pg_advisory_unlock(%s)", [_number(grant.name)]
                ).fetchone()
                if row is None or not row[0]:
                    raise Failed("not-held", "this connection does not hold the lock")
            else:
                self._end(connection)
        except psycopg.Error as error:
            # Whether or not the release arrived, the lock goes with the connection.
            self._drop()
            raise Failed("not-held", f"the connection broke: {error}") from error

    def _end(self, connection: psycopg.Connection[Any]) -> None:
        """End the transaction if there is one; the server frees its locks."""
        if self._options["mode"] == "row":
            connection.execute("COMMIT")

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self._rows.clear()
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def close(self) -> None:
        self._keepalive.close()
        self._drop()


def _number(name: str) -> int:
    """Return the number of an advisory lock."""
    return zlib.crc32(name.encode())


LOCK = LockType(
    name="postgres",
    what="one PostgreSQL server: an advisory or a row lock, which its connection holds",
    make=PostgresLock,
    servers=1,
    kind="postgres",
    options={
        "mode": Option("advisory", ("advisory", "row"), what="pg_advisory_lock; FOR UPDATE"),
        "token": Option("none", ("none", "sequence"), what="drawn after the grant"),
        **WAITS,
    },
    promises={"fifo": True},
    least_ttl_ms=1000,
    whole_seconds=True,
    ends_with="connection",
)
