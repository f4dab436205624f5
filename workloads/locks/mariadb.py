"""The lock of one MariaDB server: GET_LOCK, which its session holds until it ends.

The server does not probe silent connections unless it is configured to, and keeps a session
without a request for eight hours (wait_timeout). A client that is cut off would hold the lock for
as long. So each session sets its wait_timeout to the TTL, and a client with the lock asks at least
three times per TTL. Its deadline is the TTL from when the last answered query was sent: the server
ends no session before that, unless it crashes. A client that is paused for longer loses the lock.

The token is drawn after the grant, from a row or a sequence. The row's UPDATE is on disk when it is
answered. A number of a sequence is not: see docs/locks.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant
from fencepost.workloads.contract.locktype import LockType, Reference
from fencepost.workloads.contract.option import WAITS, Option
from fencepost.workloads.locks.sql_session import SqlSession
from fencepost.workloads.transport.deferred import Deferred, load
from fencepost.workloads.transport.mariadb_link import connected

if TYPE_CHECKING:
    import pymysql
else:
    pymysql = Deferred("pymysql")

_PREPARE = {
    "none": (),
    "counter": (
        "CREATE TABLE IF NOT EXISTS fencepost_token (value BIGINT PRIMARY KEY, id INT UNIQUE)",
        "INSERT IGNORE INTO fencepost_token VALUES (0, 1)",
    ),
    "sequence": ("CREATE SEQUENCE IF NOT EXISTS fencepost_sequence NOCACHE",),
}
_DRAW = {
    "none": ("SELECT NULL",),
    "counter": (
        "UPDATE fencepost_token SET value = LAST_INSERT_ID(value + 1)",
        "SELECT LAST_INSERT_ID()",
    ),
    "sequence": ("SELECT NEXTVAL(fencepost_sequence)",),
}


class MariadbLock:
    """`options`: token (none, counter, sequence), wait_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        load(pymysql)
        self._env = env
        self._node = nodes[0]
        self._options = options
        self._timeout_s = options["node_timeout_ms"] / 1000
        self._session: SqlSession[pymysql.Connection[Any]] = SqlSession(
            env, self._node, self._ask, (OSError, pymysql.MySQLError), renews=True
        )
        # When the connection was last used, in ns.
        self._asked = 0

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        with self._session.answered("unreachable"):
            if self._env.now() - self._asked > ttl_ns // 2:
                # A session that holds a lock is never idle for as long, and the server ends others.
                self._session.drop()
            connection = self._session.open(lambda: self._connect(ttl_ns))
        with self._session.answered("not-granted"):
            wait_s = self._options["wait_ms"] / 1000
            (granted,) = self._ask(connection, ("SELECT GET_LOCK(%s, %s)",), wait_s, name, wait_s)
            if not granted:
                raise Failed("not-granted", f"not its turn within {wait_s:g} s")
            sent = self._env.now()
            (token,) = self._ask(connection, _DRAW[self._options["token"]])
        return self._session.grant(name, token, sent, ttl_ns)

    def _connect(self, ttl_ns: int) -> pymysql.Connection[Any]:
        connection = connected(self._env.address(self._node), self._timeout_s)
        try:
            lasts_s = max(1, ttl_ns // 1_000_000_000)
            prepare = _PREPARE[self._options["token"]]
            self._ask(connection, (*prepare, f"SET wait_timeout = {lasts_s}"))
        except BaseException:
            connection.close()
            raise
        return connection

    def _ask(
        self, connection: pymysql.Connection[Any], queries: Sequence[str] = ("SELECT 1",),
        wait_s: float = 0.0, *values: Any,
    ) -> Any:  # fmt: skip
        """Execute statements; return the first row of the last. `wait_s`: how long they may wait
        for locks, in addition to the timeout."""
        self._asked = self._env.now()
        # PyMySQL has no other way to give one query more time.
        connection._read_timeout = self._timeout_s + wait_s
        with connection.cursor() as cursor:
            for query in queries:
                cursor.execute(query, values)
            return cursor.fetchone()

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        """Ask for something, so that the server's wait for a request begins again."""
        return self._session.extend(grant, ttl_ns)

    def release(self, grant: Grant) -> None:
        with self._session.releasing(grant) as connection:
            (released,) = self._ask(connection, ("SELECT RELEASE_LOCK(%s)",), 0.0, grant.name)
            if released != 1:
                raise Failed("not-held", "this connection does not hold the lock")

    def close(self) -> None:
        self._session.close()


LOCK = LockType(
    name="mariadb",
    what="one MariaDB server: GET_LOCK, which its session holds while it asks often enough",
    make=MariadbLock,
    servers=1,
    kind="mariadb",
    options={
        "token": Option("none", ("none", "counter", "sequence"), what="drawn after the grant"),
        **WAITS,
    },
    promises={"fifo": True},
    least_ttl_ms=1000,
    whole_seconds=True,
    ends_with="connection",
    renews=True,
    # A wait that is much longer than a lease would be a late grant by itself.
    reference=Reference("connection", {"wait_ms": "2000"}),
)
