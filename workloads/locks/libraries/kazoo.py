"""kazoo's lock recipe (kazoo.recipe.lock.Lock) on a ZooKeeper cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, LockTimeout
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.recipe.lock import Lock
from kazoo.retry import RetryFailedError

from fencepost.workloads.locks.lock import Env, Failed, Grant, Indeterminate

_TROUBLE = (KazooException, KazooTimeoutError, RetryFailedError)


class KazooLock:
    """`options`: token (czxid, none), wait_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._options = options
        self._hosts = ",".join(f"{host}:{port}" for host, port in map(env.address, nodes))
        self._client: KazooClient | None = None
        self._held: dict[str, Lock] = {}
        self._notices = 0

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        client = self._client = self._client or self._start(ttl_ns)
        lock = client.Lock(f"/fencepost/{name}")
        try:
            granted = lock.acquire(timeout=self._options["wait_ms"] / 1000)
            notices = self._notices
            there = granted and client.exists(f"{lock.path}/{lock.node}")
        except LockTimeout as error:
            raise Failed("not-granted", str(error)) from error
        except _TROUBLE as error:
            raise Indeterminate("timeout", repr(error)) from error
        if not granted:
            raise Failed("not-granted", "acquire returned False")
        self._held[lock.prefix] = lock
        if self._notices != notices:
            self._env.lost(lock.prefix, "the connection was in doubt as the lock was granted")
        counted = self._options["token"] == "czxid" and there
        return Grant(name, there.czxid if counted else None, None, lock.prefix)

    def _start(self, ttl_ns: int) -> KazooClient:
        client = KazooClient(self._hosts, timeout=ttl_ns / 1e9)
        client.add_listener(self._listen)
        try:
            client.start(self._options["node_timeout_ms"] / 1000)
        except KazooTimeoutError as error:
            raise Failed("unreachable", "no session with any server") from error
        return client

    def _listen(self, state: str) -> None:
        """kazoo's documentation: in either state its user has to take the lock for lost."""
        if state in (KazooState.SUSPENDED, KazooState.LOST):
            self._notices += 1
            for secret in list(self._held):
                self._env.lost(secret, f"the connection is {state}")

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        raise Failed("not-held", "kazoo's lock lasts as long as the session; nothing extends it")

    def release(self, grant: Grant) -> None:
        try:
            released = self._held.pop(grant.secret).release()
        except _TROUBLE as error:
            raise Indeterminate("timeout", repr(error)) from error
        if not released:
            raise Failed("not-held", "release returned False")

    def close(self) -> None:
        if self._client is not None:
            self._client.remove_listener(self._listen)
            with suppress(Exception):
                self._client.stop()
            with suppress(Exception):
                self._client.close()
