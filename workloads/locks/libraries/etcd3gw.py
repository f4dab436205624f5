"""etcd3gw's lock (etcd3gw.lock.Lock) through the JSON gateway of one server of an etcd cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant
from fencepost.workloads.contract.option import Option
from fencepost.workloads.locks.libraries import aetcd
from fencepost.workloads.locks.libraries.errors import translated
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    import etcd3gw
    import requests
    from etcd3gw import exceptions, lock
else:
    etcd3gw, exceptions = Deferred("etcd3gw"), Deferred("etcd3gw.exceptions")
    requests = Deferred("requests")


class Etcd3gwLock:
    """`options`: node_timeout_ms. Its acquire tries once."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        load(etcd3gw, exceptions, requests)
        self._env = env
        host, port = env.address(env.random.choice(nodes))
        self._client = etcd3gw.Etcd3Client(host, port, timeout=options["node_timeout_ms"] / 1000)
        self._held: dict[str, lock.Lock] = {}

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        begun = self._env.now()
        found = self._client.lock(name, ttl_ns // 1_000_000_000)
        with translated((exceptions.Etcd3Exception, requests.RequestException)):
            granted = found.acquire()
        if not granted:
            raise Failed("not-granted", "held by another")
        self._held[found.uuid] = found
        return Grant(name, None, begun + ttl_ns, found.uuid, assumed=True)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        begun = self._env.now()
        with translated((exceptions.Etcd3Exception, requests.RequestException)):
            left_s = self._held[grant.secret].refresh()
        if left_s <= 0:
            raise Failed("not-held", "the lease is gone")
        return replace(grant, deadline=begun + left_s * 1_000_000_000, assumed=False)

    def release(self, grant: Grant) -> None:
        with translated((exceptions.Etcd3Exception, requests.RequestException)):
            released = self._held.pop(grant.secret).release()
        if not released:
            raise Failed("not-held", "the key is not this holder's any more")

    def close(self) -> None:
        self._client.session.close()


LOCK = replace(
    aetcd.LOCK,
    name="etcd3gw",
    what="library etcd3gw (PyPI): its lock, through the gateway of one server of an etcd cluster",
    make=Etcd3gwLock,
    options={"node_timeout_ms": Option(1000, least=1, what="how long one request may take")},
    library="etcd3gw",
)
