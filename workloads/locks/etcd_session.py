"""A session with etcd: one lease, kept alive, and how long its client may believe in it.

It follows etcd's own `concurrency` package, except for the deadline: the lease runs for its TTL
from when the leader received a keepalive, and so at least from when it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from fencepost.workloads.contract.lock import Env, Failed, Grant
from fencepost.workloads.locks.keepalive import Keepalive
from fencepost.workloads.transport.etcd_gateway import Gateway


class Session:
    """A session, opened before each grant; opening one whose lease is gone begins another.

    `over` is called, like the holders, when a lease could not be kept alive. `timeout_s` is for one
    request.
    """

    def __init__(
        self,
        env: Env,
        nodes: Sequence[str],
        timeout_s: float,
        over: Callable[[int], None] | None = None,
    ) -> None:
        self._env = env
        self._ttl_ns = 0
        self._on_over = over
        # A waiting request must not delay the one that keeps the lease alive.
        addresses = [env.address(node) for node in nodes]
        env.random.shuffle(addresses)
        self._gateway = Gateway(addresses, timeout_s, env.now, env.pool)
        self._keepalive = Keepalive(env, self._renewed, self._over)
        self._lock = env.mutex()
        self._held: set[str] = set()
        self._deadline = 0
        self.lease = 0

    def open(self, ttl_ns: int) -> int:
        """Return the id of the lease; grant one for this time if there is none."""
        lease = self.lease
        if not lease:
            begun = self._env.now()
            lease = self.lease = self._gateway.grant_lease(ttl_ns // 1_000_000_000)
            self._ttl_ns, self._deadline = ttl_ns, begun + ttl_ns
            self._keepalive.watch(str(lease), ttl_ns, self._deadline, self.beat)
        # A client that was paused for longer than the lease may have lost it by now, and its number
        # is 0 then: a key without a lease would exist for ever.
        return lease

    def extend(self, grant: Grant) -> Grant:
        """Keep the lease of a grant alive. Failed "not-held" if it was lost."""
        if not self.holds(grant.secret):
            raise Failed("not-held", "the lease was lost")
        return replace(grant, deadline=self.beat())

    def beat(self) -> int:
        """Keep the lease alive; return its new deadline."""
        sent = self._env.now()
        self._gateway.keep_alive(self.lease)
        with self._lock:
            self._deadline = max(self._deadline, sent + self._ttl_ns)
            return self._deadline

    @property
    def deadline(self) -> int:
        """Return the deadline that the last answered keepalive proves."""
        with self._lock:
            return self._deadline

    def hold(self, secret: str) -> None:
        with self._lock:
            self._held.add(secret)

    def holds(self, secret: str) -> bool:
        with self._lock:
            return secret in self._held

    def let_go(self, secret: str) -> None:
        with self._lock:
            self._held.discard(secret)

    def _renewed(self, _: str, deadline: int) -> None:
        with self._lock:
            held = list(self._held)
        for secret in held:
            self._env.renewed(secret, deadline)

    def _over(self, lease: str, why: str) -> None:
        with self._lock:
            if str(self.lease) != lease:
                return
            self.lease = 0
            held, self._held = self._held, set()
        for secret in held:
            self._env.lost(secret, why)
        if self._on_over is not None:
            self._on_over(int(lease))

    def abandon(self) -> None:
        """Stop renewing the lease, so that it expires at the server. A new one may be opened."""
        with self._lock:
            lease, self.lease = self.lease, 0
        self._keepalive.forget(str(lease))

    def close(self) -> None:
        """Revoke the lease, and all keys with it."""
        self._keepalive.close()
        lease, self.lease = self.lease, 0
        if lease:
            with suppress(Failed):
                self._gateway.revoke(lease)
        self._gateway.close()
