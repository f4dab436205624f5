"""A lease in a row of one PostgreSQL server, which expires by the server's clock.

No session keeps it: a client takes the row if it has no owner or if its lease has expired, and only
the owner extends or ends it. A jump of the server's clock ends a lease early. The token counts the
owners of the row, which is never deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate
from fencepost.workloads.contract.locktype import LockType, Reference
from fencepost.workloads.contract.option import Option
from fencepost.workloads.transport.postgres_link import PostgresLink, Refused, Rows, quoted

_TABLE = """
CREATE TABLE IF NOT EXISTS fencepost_lease
  (name text PRIMARY KEY, owner text NOT NULL, until timestamptz NOT NULL, token bigint NOT NULL)
"""
_EXISTS = ("23505", "42P07")
_TAKE = """
INSERT INTO fencepost_lease VALUES ({name}, {owner}, clock_timestamp() + {lease}, 1)
ON CONFLICT (name) DO UPDATE
  SET owner = excluded.owner, until = excluded.until, token = fencepost_lease.token + 1
  WHERE fencepost_lease.owner = '' OR fencepost_lease.until < clock_timestamp()
RETURNING token
"""
_EXTEND = """
UPDATE fencepost_lease SET until = clock_timestamp() + {lease}
WHERE name = {name} AND owner = {owner} AND until >= clock_timestamp() RETURNING token
"""
_END = """
UPDATE fencepost_lease SET owner = '' WHERE name = {name} AND owner = {owner} RETURNING token
"""


class PostgresLease:
    """`options`: token (none, row), node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._node = nodes[0]
        self._options = options
        self._connection: PostgresLink | None = None

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        self._connect()
        begun = self._env.now()
        secret = self._env.random.randbytes(8).hex()
        rows = self._ask(_TAKE, name, secret, ttl_ns)
        if not rows:
            raise Failed("not-granted", "another client has the lease")
        token = None if self._options["token"] == "none" else int(str(rows[0][0]))
        return Grant(name, token, begun + ttl_ns, secret)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        begun = self._env.now()
        if not self._ask(_EXTEND, grant.name, grant.secret, ttl_ns):
            raise Failed("not-held", "the lease has expired")
        return replace(grant, deadline=begun + ttl_ns)

    def release(self, grant: Grant) -> None:
        if not self._ask(_END, grant.name, grant.secret):
            raise Failed("not-held", "another client has the lease")

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> PostgresLink:
        """Connect unless connected. Raises Failed: nothing was asked for yet."""
        if self._connection is None:
            timeout_s = self._options["node_timeout_ms"] / 1000
            settings = {"statement_timeout": self._options["node_timeout_ms"]}
            try:
                self._connection = PostgresLink(self._env.address(self._node), timeout_s, settings)
                self._connection.ask(_TABLE)
            except (OSError, Refused) as error:
                # Two clients create the same table at once: one is refused, and the table exists.
                if not isinstance(error, Refused) or error.code not in _EXISTS:
                    self.close()
                    raise Failed("unreachable", f"{self._node}: {error}") from error
        assert self._connection is not None
        return self._connection

    def _ask(self, sql: str, name: str, owner: str, ttl_ns: int = 0) -> Rows:
        words = {"name": quoted(name), "owner": quoted(owner)}
        lease = f"interval '{ttl_ns // 1_000_000} milliseconds'"
        try:
            return self._connect().ask(sql.format(lease=lease, **words))
        except (OSError, Refused) as error:
            self.close()
            raise Indeterminate("timeout", f"{self._node}: {error}") from error


LOCK = LockType(
    name="postgres-lease",
    what="one PostgreSQL server: a lease in a row, which expires by the server's clock",
    make=PostgresLease,
    servers=1,
    kind="postgres",
    options={
        "token": Option("none", ("none", "row"), what="counts the owners of the row"),
        "node_timeout_ms": Option(1000, least=1, what="timeout for one request"),
    },
    promises={"true_refusals": True},
    dials=True,
    reference=Reference(),
)
