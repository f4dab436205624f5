"""A leader by an advisory lock of PostgreSQL, as many applications elect one.

A candidate tries pg_try_advisory_lock on a session of its own, and leads while it has that session:
it asks the server something every retry period, and stops if no answer comes. Its deadline is one
TTL after the last answered query was sent. The server probes silent connections with TCP
keepalives and drops none before that.

With `reconnects=yes` it connects again after an error, and works on without the lock: so does a
connection pool that replaces a broken connection in silence.

Behind PgBouncer with pool_mode = transaction, two clients share a session of the server. It takes
no settings of a session.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fencepost.workloads.contract.lock import Env
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.electors.plain import ElectorLock
from fencepost.workloads.transport.postgres_link import PostgresLink, Refused

_BROKEN = (OSError, Refused)


class PostgresLeader:
    """An elector of the plain contract."""

    pooled = False

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        reconnects: str,
        retry_period_ms: int,
        request_timeout_ms: int,
    ) -> None:
        self._server = servers[0]
        self._reconnects = reconnects == "yes"
        self._retry_s, self._timeout_s = retry_period_ms / 1000, request_timeout_ms / 1000
        self._resigned = threading.Event()

    def run(
        self,
        name: str,
        identity: str,
        ttl: float,
        started: Callable[..., Callable[[float], None]],
        stopped: Callable[[], None],
    ) -> None:
        number = zlib.crc32(name.encode())
        session = self._connect(ttl)
        try:
            until = self._campaign(session, number, ttl)
            if until is None:
                return
            if self._reconnects:
                started()
                session = self._work_on(session, ttl)
            else:
                self._lead(session, ttl, started(deadline=until))
            stopped()
            with suppress(*_BROKEN):
                session.ask(f"SELECT pg_advisory_unlock({number})")
        finally:
            session.close()

    def _connect(self, ttl: float) -> PostgresLink:
        probes = {
            "tcp_keepalives_idle": max(1, round(ttl)),
            "tcp_keepalives_interval": 1,
            "tcp_keepalives_count": 1,
            "tcp_user_timeout": round(ttl * 1000) + 1000,
        }
        return PostgresLink(self._server, self._timeout_s, {} if self.pooled else probes)

    def _campaign(self, session: PostgresLink, number: int, ttl: float) -> float | None:
        """Return until when it leads, once it has the lock; None if it has resigned before."""
        while not self._resigned.is_set():
            sent = time.monotonic()
            if session.ask(f"SELECT pg_try_advisory_lock({number})") == [["t"]]:
                return sent + ttl
            self._resigned.wait(self._retry_s)
        return None

    def _lead(self, session: PostgresLink, ttl: float, renewed: Callable[[float], None]) -> None:
        """Return when it has resigned, or its session has failed."""
        while not self._resigned.wait(self._retry_s):
            sent = time.monotonic()
            try:
                session.ask("SELECT 1")
            except _BROKEN:
                return
            renewed(sent + ttl)

    def _work_on(self, session: PostgresLink, ttl: float) -> PostgresLink:
        """Return its present session when it has resigned."""
        while not self._resigned.wait(self._retry_s):
            with suppress(*_BROKEN):
                try:
                    session.ask("SELECT 1")
                except _BROKEN:
                    session.close()
                    session = self._connect(ttl)
        return session

    def resign(self) -> None:
        self._resigned.set()


class PooledLeader(PostgresLeader):
    """The same behind PgBouncer."""

    pooled = True


def _make(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> ElectorLock:
    return ElectorLock("postgres-leader", PostgresLeader, env, nodes, options)


def _make_pooled(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> ElectorLock:
    return ElectorLock("pgbouncer-leader", PooledLeader, env, nodes, options)


ELECTOR = LockType(
    name="postgres-leader",
    what="elector on one PostgreSQL server: an advisory lock of its session",
    make=_make,
    servers=1,
    kind="postgres",
    options={
        "reconnects": Option(
            "no", ("no", "yes"), what="whether a broken session is replaced in silence"
        ),
        "retry_period_ms": Option(500, least=1, what="how long it waits between two queries"),
        "request_timeout_ms": Option(500, least=1, what="how long an answer may take"),
    },
    least_ttl_ms=1000,
    whole_seconds=True,
    extends=False,
    ends_with="connection",
    renews=True,
    elector=True,
    dials=True,
)

POOLED = replace(
    ELECTOR,
    name="pgbouncer-leader",
    what="the same through PgBouncer with pool_mode = transaction",
    make=_make_pooled,
    kind="pgbouncer",
)
