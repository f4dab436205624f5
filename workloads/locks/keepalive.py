"""Keeps leases alive in the background, for locks that hold one until release."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fencepost.workloads.contract.lock import Env, Failed, Indeterminate

# Renewed every third of the TTL, as etcd's client and Redisson do; an unanswered renewal is retried
# this many times per TTL.
_RENEWALS = 3
_RETRIES = 24


@dataclass
class _Lease:
    ttl_ns: int
    deadline: int
    due: int
    renew: Callable[[], int]
    every_ns: int


def _nobody(secret: str, what: int | str) -> None:
    """Ignores the notice that a lease is no longer kept alive."""


class Keepalive:
    """Two threads for all leases of a lock, from the first one until `close`: one renews, and one
    watches the clock, because a request without an answer may outlast the lease.

    The state of a lease is reported, usually through the env: `renewed`, or `lost` once a server
    reports it gone, or its deadline has passed without an answer.

    `renews`: whether a lease depends on these requests. If not, it is renewed elsewhere or not at
    all, and the answers only show that it is still valid. The thread's name depends on it
    (nemesis/pause.py).
    """

    def __init__(
        self,
        env: Env,
        renewed: Callable[[str, int], None] | None = None,
        lost: Callable[[str, str], None] | None = None,
        renews: bool = True,
    ) -> None:
        self._env = env
        self._renews = renews
        self._renewed = renewed or env.renewed
        self._lost = lost or env.lost
        self._leases: dict[str, _Lease] = {}
        self._lock = env.mutex()
        self._running = False
        self._closed = False
        # A thread waits no longer, so that it notices a new lease in time.
        self._longest_ns = 0

    def watch(
        self,
        secret: str,
        ttl_ns: int,
        deadline: int,
        renew: Callable[[], int],
        renewals: int = _RENEWALS,
    ) -> None:
        """Renew this many times per TTL. `renew` asks the server and returns the new deadline (ns
        of the env's clock); it raises Failed if the lease is gone, Indeterminate without an answer.
        """
        with self._lock:
            every_ns = ttl_ns // renewals
            self._longest_ns = min(self._longest_ns or every_ns, every_ns)
            due = self._env.now() + every_ns
            self._leases[secret] = _Lease(ttl_ns, deadline, due, renew, every_ns)
            if not self._running:
                self._running = True
                self._env.background(self._renew_all if self._renews else self._ask_all)
                self._env.background(self._watch_all)

    def forget(self, secret: str) -> None:
        with self._lock:
            self._leases.pop(secret, None)

    def close(self) -> None:
        """Stop renewing. Stop callbacks and drop references."""
        with self._lock:
            self._closed = True
            self._leases.clear()
            self._renewed = self._lost = _nobody

    def _renew_all(self) -> None:
        while not self._closed:
            for secret, lease in self._all():
                if self._env.now() >= lease.due:
                    self._renew(secret, lease)
            self._wait_until(lease.due for _, lease in self._all())

    def _ask_all(self) -> None:
        self._renew_all()

    def _watch_all(self) -> None:
        while not self._closed:
            for secret, lease in self._all():
                if self._env.now() >= lease.deadline:
                    self._lose(secret, lease, "it could not be renewed in time")
            self._wait_until(lease.deadline for _, lease in self._all())

    def _all(self) -> list[tuple[str, _Lease]]:
        with self._lock:
            return list(self._leases.items())

    def _wait_until(self, times: Iterable[int]) -> None:
        now = self._env.now()
        wait_ns = min(times, default=now + self._longest_ns) - now
        self._env.sleep(max(0, min(wait_ns, self._longest_ns)) / 1e9)

    def _renew(self, secret: str, lease: _Lease) -> None:
        try:
            deadline = lease.renew()
        except Failed as error:
            if isinstance(error, Indeterminate) or error.kind == "unreachable":
                lease.due = self._env.now() + lease.ttl_ns // _RETRIES
            else:
                self._lose(secret, lease, error.text)
            return
        with self._lock:
            if self._leases.get(secret) is not lease:
                return
            lease.deadline, lease.due = deadline, self._env.now() + lease.every_ns
        self._renewed(secret, deadline)

    def _lose(self, secret: str, lease: _Lease, why: str) -> None:
        with self._lock:
            if self._leases.get(secret) is not lease:
                return  # released meanwhile: nothing is lost
            del self._leases[secret]
        self._lost(secret, why)
