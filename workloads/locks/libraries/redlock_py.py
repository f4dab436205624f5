"""redlock-py's Redlock on five servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.locks.libraries.redis_client import CLIENT_RETRIES, connect
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    import redlock
else:
    redlock = Deferred("redlock")


class RedlockPyLock:
    """`options`: retries, retry_delay_ms, node_timeout_ms, client_retries."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        load(redlock)
        self._env = env
        self._servers = [connect(env, node, options) for node in nodes]
        self._redlock = redlock.Redlock(
            self._servers, options["retries"], options["retry_delay_ms"] / 1000
        )
        self._held: dict[str, redlock.Lock] = {}

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        begun = self._env.now()
        try:
            lock = self._redlock.lock(name, ttl_ns // 1_000_000)
        except redlock.MultipleRedlockException as error:
            # It has a quorum, but does not report it and leaves the keys, which cannot be released
            # then.
            raise Indeterminate("no-quorum", str(error)) from error
        if not lock:
            raise Failed("not-granted", f"not granted in {self._redlock.retry_count} tries")
        secret = lock.key.decode()
        self._held[secret] = lock
        return Grant(name, None, begun + lock.validity * 1_000_000, secret)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        raise Failed("not-held", "redlock-py extends no lease")

    def release(self, grant: Grant) -> None:
        """Release. Failing servers are logged and skipped, so this always succeeds."""
        self._redlock.unlock(self._held.pop(grant.secret))

    def close(self) -> None:
        for server in self._servers:
            server.close()


LOCK = LockType(
    name="redlock-py",
    what="library redlock-py (PyPI): its Redlock on five Redis servers",
    make=RedlockPyLock,
    servers=5,
    options={
        "retries": Option(3, least=1, what="number of tries before it gives up"),
        "retry_delay_ms": Option(200, least=1, what="the time between two tries"),
        "node_timeout_ms": Option(50, least=1, what="how long one server may take"),
        "client_retries": Option(0, what=CLIENT_RETRIES),
    },
    promises={"minority": True},
    library="redlock-py",
    module="redlock",
    extends=False,
)
