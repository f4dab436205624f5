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
from typing import Any

from fencepost.workloads.contract.lock import Env, Failed, Grant
from fencepost.workloads.contract.locktype import LockType, Reference
from fencepost.workloads.contract.option import WAITS, Option
from fencepost.workloads.locks.sql_session import SqlSession
from fencepost.workloads.transport.postgres_link import PostgresLink, Refused, quoted

_TABLES = """
CREATE SEQUENCE IF NOT EXISTS fencepost_token;
CREATE TABLE IF NOT EXISTS fencepost_lock (name text PRIMARY KEY);
"""


_NOT_ITS_TURN = "55P03"
_EXISTS = ("23505", "42P07")


class PostgresLock:
    """`options`: mode (advisory, row), token (none, sequence), wait_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._node = nodes[0]
        self._options = options
        self._session: SqlSession[PostgresLink] = SqlSession(
            env, self._node, lambda link: link.ask("SELECT 1"), (OSError, Refused), renews=False
        )
        # Locks whose rows are known to exist, by this connection.
        self._rows: set[str] = set()

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        with self._session.answered("unreachable"):
            connection = self._session.open(lambda: self._connect(ttl_ns))
            self._provide(connection, name)
        with self._session.answered("not-granted"):
            try:
                self._lock(connection, name)
            except Refused as error:
                if error.code != _NOT_ITS_TURN:
                    raise
                self._end(connection)
                raise Failed(
                    "not-granted", f"not its turn within {self._options['wait_ms']} ms"
                ) from error
            sent = self._env.now()
            token = self._token(connection)
        return self._session.grant(name, token, sent, ttl_ns)

    def _connect(self, ttl_ns: int) -> PostgresLink:
        settings = {
            "tcp_keepalives_idle": max(1, ttl_ns // 1_000_000_000),
            "tcp_keepalives_interval": 1,
            "tcp_keepalives_count": 1,
            "lock_timeout": self._options["wait_ms"],
            # Probes are not sent while an answer is pending; the default timeout then is a quarter
            # hour, in which a cut-off client's transaction keeps the lock.
            "tcp_user_timeout": ttl_ns // 1_000_000 + 1000,
            # A backend that waits for a lock checks whether its client still exists.
            "client_connection_check_interval": 500,
        }
        timeout_s = self._options["node_timeout_ms"] / 1000
        self._rows.clear()
        connection = PostgresLink(self._env.address(self._node), timeout_s, settings)
        try:
            connection.ask(_TABLES)
        except Refused as error:
            # Two clients create the same table at once: one is refused, and the table exists.
            if error.code not in _EXISTS:
                connection.close()
                raise
        except OSError:
            connection.close()
            raise
        return connection

    def _provide(self, connection: PostgresLink, name: str) -> None:
        """Insert the row of a lock that this connection has not asked for before."""
        if name not in self._rows:
            row = f"INSERT INTO fencepost_lock VALUES ({quoted(name)}) ON CONFLICT DO NOTHING"
            connection.ask(row)
            self._rows.add(name)

    def _lock(self, connection: PostgresLink, name: str) -> None:
        wait_s = self._options["wait_ms"] / 1000
        if self._options["mode"] == "advisory":
            connection.ask(f"SELECT pg_advisory_lock({_number(name)})", wait_s)
        else:
            connection.ask("BEGIN")
            row = f"SELECT FROM fencepost_lock WHERE name = {quoted(name)} FOR UPDATE"
            connection.ask(row, wait_s)

    def _token(self, connection: PostgresLink) -> int | None:
        if self._options["token"] == "none":
            connection.ask("SELECT 1")
            return None
        (row,) = connection.ask("SELECT nextval('fencepost_token')")
        assert row[0] is not None
        return int(row[0])

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        """Prove that the connection is alive, and the lock with it. This extends no deadline at the
        server."""
        return self._session.extend(grant, ttl_ns)

    def release(self, grant: Grant) -> None:
        with self._session.releasing(grant) as connection:
            if self._options["mode"] == "advisory":
                rows = connection.ask(f"SELECT pg_advisory_unlock({_number(grant.name)})")
                if rows != [["t"]]:
                    raise Failed("not-held", "this connection does not hold the lock")
            else:
                self._end(connection)

    def _end(self, connection: PostgresLink) -> None:
        """End the transaction if there is one; the server frees its locks."""
        if self._options["mode"] == "row":
            connection.ask("COMMIT")

    def close(self) -> None:
        self._session.close()


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
    dials=True,
    # A wait that is much longer than a lease would be a late grant by itself.
    reference=Reference("connection", {"wait_ms": "2000"}),
)
