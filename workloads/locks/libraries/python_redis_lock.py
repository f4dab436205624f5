"""python-redis-lock (redis_lock.Lock): one server, waiters woken by a list, leases in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.locks.libraries.errors import translated
from fencepost.workloads.locks.libraries.redis_client import CLIENT_RETRIES, connect
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    import redis_lock
    from redis import exceptions
else:
    redis_lock, exceptions = Deferred("redis_lock"), Deferred("redis.exceptions")


class PythonRedisLock:
    """`options`: auto_renewal, wait_s, node_timeout_ms, client_retries."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        load(redis_lock, exceptions)
        self._env = env
        self._wait_s: int = options["wait_s"]
        self._renews: bool = options["auto_renewal"]
        self._client = connect(env, nodes[0], options)
        self._held: dict[str, redis_lock.Lock] = {}

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        begun = self._env.now()
        expire = ttl_ns // 1_000_000_000
        lock = redis_lock.Lock(self._client, name, expire=expire, auto_renewal=self._renews)
        with translated(exceptions.RedisError):
            granted = lock.acquire(timeout=self._wait_s)
        if not granted:
            raise Failed("not-granted", f"held by another for {self._wait_s} s")
        self._held[lock.id] = lock
        # Its renewing thread reports neither its results nor its death.
        deadline = None if self._renews else begun + ttl_ns
        return Grant(name, None, deadline, lock.id, assumed=not self._renews)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        begun = self._env.now()
        with translated(exceptions.RedisError, refused=redis_lock.NotAcquired):
            self._held[grant.secret].extend(ttl_ns // 1_000_000_000)
        return replace(grant, deadline=None if self._renews else begun + ttl_ns)

    def release(self, grant: Grant) -> None:
        with translated(exceptions.RedisError, refused=redis_lock.NotAcquired):
            self._held.pop(grant.secret).release()

    def close(self) -> None:
        self._client.close()


LOCK = LockType(
    name="python-redis-lock",
    what="library python-redis-lock (PyPI): redis_lock.Lock on one Redis server",
    make=PythonRedisLock,
    servers=1,
    options={
        "auto_renewal": Option(
            False, (True, False), what="a thread of the library extends while it is held"
        ),
        "wait_s": Option(1, least=1, what="how long acquire waits, in whole seconds"),
        "node_timeout_ms": Option(
            1500, least=1, what="timeout for one request: longer than acquire waits"
        ),
        "client_retries": Option(10, what=CLIENT_RETRIES),
    },
    library="python-redis-lock",
    module="redis_lock",
    least_ttl_ms=1000,
    whole_seconds=True,
    renews="auto_renewal",
)
