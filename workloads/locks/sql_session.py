"""A session with a database server that holds locks until it ends, and proves itself alive.

The server frees the locks of a session that has ended, and no client is notified. So a client with
a lock sends a query at least three times per TTL. It believes for one TTL from when the last
answered query was sent. A session that gives no answer is closed, and its locks are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from fencepost.workloads.contract.lock import Env, Failed, Grant
from fencepost.workloads.locks.keepalive import Keepalive


class _Connection(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Connection)


class SqlSession(Generic[C]):
    """The connection of one client. `prove` sends a query and waits for the answer. It, and
    everything else that uses the connection, raises `errors` if the session has failed.

    `renews`: whether the server ends a session that asks nothing for one TTL.
    """

    def __init__(
        self,
        env: Env,
        node: str,
        prove: Callable[[C], object],
        errors: tuple[type[Exception], ...],
        renews: bool,
    ) -> None:
        self._env = env
        self._node = node
        self._prove = prove
        self._errors = errors
        self._keepalive = Keepalive(env, renews=renews)
        # The connection holds the locks while it exists.
        self._connection: C | None = None
        # The thread that proves it alive uses the connection, too.
        self._busy = env.mutex()

    @contextmanager
    def answered(self, kind: str) -> Iterator[None]:
        """Use the connection. After an error drop it, and the locks that it holds, and raise
        Failed of this kind."""
        with self._busy:
            try:
                yield
            except self._errors as error:
                self.drop()
                raise Failed(kind, f"{self._node}: {error}") from error

    def open(self, connect: Callable[[], C]) -> C:
        """Return the connection; connect if there is none. Call it within `answered`."""
        if self._connection is None:
            self._connection = connect()
        return self._connection

    def grant(self, name: str, token: int | None, sent: int, ttl_ns: int) -> Grant:
        """Return the grant of a lock that this session holds, and prove the session alive from then
        on. `sent`: when the last answered query was sent (ns)."""
        secret = self._env.random.randbytes(8).hex()
        deadline = sent + ttl_ns
        self._keepalive.watch(secret, ttl_ns, deadline, lambda: self._beat(ttl_ns))
        return Grant(name, token, deadline, secret)

    def _beat(self, ttl_ns: int) -> int:
        """Prove the session alive; return until when its client may believe."""
        with self._busy:
            sent = self._env.now()
            connection = self._held()
            try:
                self._prove(connection)
            except self._errors as error:
                # The answer may still come, and the next query would take it for its own.
                self.drop()
                raise Failed("not-held", f"the connection is broken: {error}") from error
        return sent + ttl_ns

    def _held(self) -> C:
        if self._connection is None:
            raise Failed("not-held", "the connection is closed, and the lock gone with it")
        return self._connection

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        """Prove that the session is alive, and the lock with it."""
        try:
            return replace(grant, deadline=self._beat(ttl_ns))
        except Failed as error:
            # The lock went with its connection, long before its deadline.
            self._env.lost(grant.secret, error.text)
            raise

    @contextmanager
    def releasing(self, grant: Grant) -> Iterator[C]:
        """Release a grant on the connection that this yields. Whether or not the release arrives,
        the lock goes with the connection."""
        self._keepalive.forget(grant.secret)
        with self.answered("not-held"):
            yield self._held()

    def drop(self) -> None:
        """Close the connection if there is one, and lose its locks."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*self._errors):
                connection.close()

    def close(self) -> None:
        self._keepalive.close()
        self.drop()
