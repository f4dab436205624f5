"""etcd3gw's lock (etcd3gw.lock.Lock) through the JSON gateway of one server of an etcd cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from etcd3gw import Etcd3Client
from etcd3gw.exceptions import Etcd3Exception
from etcd3gw.lock import Lock
from requests import RequestException

from fencepost.workloads.locks.lock import Env, Failed, Grant, Indeterminate

_TROUBLE = (Etcd3Exception, RequestException)


class Etcd3gwLock:
    """`options`: node_timeout_ms. Its acquire tries once."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        host, port = env.address(env.random.choice(nodes))
        self._client = Etcd3Client(host, port, timeout=options["node_timeout_ms"] / 1000)
        self._held: dict[str, Lock] = {}

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        begun = self._env.now()
        lock = self._client.lock(name, ttl_ns // 1_000_000_000)
        try:
            granted = lock.acquire()
        except _TROUBLE as error:
            raise Indeterminate("timeout", repr(error)) from error
        if not granted:
            raise Failed("not-granted", "held by another")
        self._held[lock.uuid] = lock
        return Grant(name, None, begun + ttl_ns, lock.uuid)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        begun = self._env.now()
        try:
            left_s = self._held[grant.secret].refresh()
        except _TROUBLE as error:
            raise Indeterminate("timeout", repr(error)) from error
        if left_s <= 0:
            raise Failed("not-held", "the lease is gone")
        return replace(grant, deadline=begun + left_s * 1_000_000_000)

    def release(self, grant: Grant) -> None:
        try:
            released = self._held.pop(grant.secret).release()
        except _TROUBLE as error:
            raise Indeterminate("timeout", repr(error)) from error
        if not released:
            raise Failed("not-held", "the key is not this holder's any more")

    def close(self) -> None:
        self._client.session.close()
