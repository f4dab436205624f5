"""redis-py's own lock (redis.lock.Lock), on one server, or on the primary that Sentinel names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.locks.libraries.errors import translated
from fencepost.workloads.locks.libraries.redis_client import CLIENT_RETRIES, connect, primary
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    import redis
    from redis import exceptions, lock
else:
    exceptions = Deferred("redis.exceptions")


class RedisPyLock:
    """The lock. `client`: of the server. `options`: wait_ms, node_timeout_ms, client_retries."""

    def __init__(self, env: Env, client: redis.Redis, options: Mapping[str, Any]) -> None:
        load(exceptions)
        self._env = env
        self._wait_s = options["wait_ms"] / 1000
        self._client = client
        self._held: dict[str, lock.Lock] = {}

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        begun = self._env.now()
        found = self._client.lock(name, timeout=ttl_ns / 1e9, blocking_timeout=self._wait_s)
        with translated(exceptions.RedisError):
            granted = found.acquire()
        if not granted:
            raise Failed("not-granted", f"held by another for {self._wait_s:g} s")
        secret = self._env.random.randbytes(8).hex()
        self._held[secret] = found
        return Grant(name, None, begun + ttl_ns, secret, assumed=True)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        begun = self._env.now()
        with translated(exceptions.RedisError, refused=exceptions.LockError):
            self._held[grant.secret].extend(ttl_ns / 1e9, replace_ttl=True)
        return replace(grant, deadline=begun + ttl_ns)

    def release(self, grant: Grant) -> None:
        with translated(exceptions.RedisError, refused=exceptions.LockError):
            self._held.pop(grant.secret).release()

    def close(self) -> None:
        self._client.close()


LOCK = LockType(
    name="redis-py",
    what="library redis-py (PyPI): redis.lock.Lock on one Redis server",
    make=lambda env, nodes, options: RedisPyLock(env, connect(env, nodes[0], options), options),
    servers=1,
    options={
        "wait_ms": Option(1000, least=1, what="how long acquire waits for the lock"),
        "node_timeout_ms": Option(1000, least=1, what="how long one request may take"),
        "client_retries": Option(10, what=CLIENT_RETRIES),
    },
    promises={"true_refusals": True},
    library="redis-py",
    package="redis",
    module="redis",
)

SENTINEL = replace(
    LOCK,
    name="redis-sentinel",
    what="library redis-py (PyPI): the same on a primary with replicas, behind Sentinel",
    make=lambda env, nodes, options: RedisPyLock(env, primary(env, nodes, options), options),
    servers=5,
    options={
        **LOCK.options,
        "node_timeout_ms": Option(200, least=1, what="how long one request may take"),
        "client_retries": Option(0, what=CLIENT_RETRIES),
    },
    promises={},
    replicated=True,
    server="sentinel",
)
