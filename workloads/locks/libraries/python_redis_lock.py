"""python-redis-lock (redis_lock.Lock): one server, waiters woken by a list, leases in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from redis.exceptions import RedisError
from redis_lock import Lock, NotAcquired

from fencepost.workloads.locks.libraries.redis_client import connect
from fencepost.workloads.locks.lock import Env, Failed, Grant, Indeterminate


class PythonRedisLock:
    """`options`: auto_renewal, wait_s, node_timeout_ms, client_retries."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._wait_s: int = options["wait_s"]
        self._renews: bool = options["auto_renewal"]
        self._client = connect(env, nodes[0], options)
        self._held: dict[str, Lock] = {}

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        begun = self._env.now()
        expire = ttl_ns // 1_000_000_000
        lock = Lock(self._client, name, expire=expire, auto_renewal=self._renews)
        try:
            granted = lock.acquire(timeout=self._wait_s)
        except RedisError as error:
            raise Indeterminate("timeout", repr(error)) from error
        if not granted:
            raise Failed("not-granted", f"held by another for {self._wait_s} s")
        self._held[lock.id] = lock
        # What its renewing thread does, and whether it lives, nobody is told.
        return Grant(name, None, None if self._renews else begun + ttl_ns, lock.id)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        begun = self._env.now()
        try:
            self._held[grant.secret].extend(ttl_ns // 1_000_000_000)
        except NotAcquired as error:
            raise Failed("not-held", str(error)) from error
        except RedisError as error:
            raise Indeterminate("timeout", repr(error)) from error
        return replace(grant, deadline=None if self._renews else begun + ttl_ns)

    def release(self, grant: Grant) -> None:
        try:
            self._held.pop(grant.secret).release()
        except NotAcquired as error:
            raise Failed("not-held", str(error)) from error
        except RedisError as error:
            raise Indeterminate("timeout", repr(error)) from error

    def close(self) -> None:
        self._client.close()
