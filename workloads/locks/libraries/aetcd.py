"""aetcd's lock (aetcd.locks.Lock) on one server of an etcd cluster; its loop runs in a thread."""

from __future__ import annotations

import threading
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    import asyncio

    import aetcd
    from aetcd import exceptions, locks
else:
    # asyncio is always available, but slow to load, and every command imports this file.
    asyncio, aetcd, exceptions = map(Deferred, ("asyncio", "aetcd", "aetcd.exceptions"))


class AetcdLock:
    """`options`: token (revision, none), wait_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        load(aetcd, exceptions)
        self._env = env
        self._options = options
        self._wait_s = options["wait_ms"] / 1000
        self._address = env.address(env.random.choice(nodes))
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._client: aetcd.Client = self._run(self._open())
        self._held: dict[str, locks.Lock] = {}

    async def _open(self) -> aetcd.Client:
        host, port = self._address
        return aetcd.Client(host, port, timeout=self._options["node_timeout_ms"] / 1000)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except (exceptions.ClientError, TimeoutError) as error:
            raise Indeterminate("timeout", repr(error)) from error

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        begun = self._env.now()
        lock = self._client.lock(name.encode(), ttl_ns // 1_000_000_000)
        if not self._run(lock.acquire(timeout=self._wait_s)):
            raise Failed("not-granted", f"held by others for {self._wait_s:g} s")
        secret = lock.uuid.hex()
        self._held[secret] = lock
        token = lock.revision if self._options["token"] == "revision" else None
        return Grant(name, token, begun + ttl_ns, secret, assumed=True)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        begun = self._env.now()
        reply = self._run(self._held[grant.secret].refresh())
        if not reply.TTL:
            raise Failed("not-held", "the lease is gone")
        return replace(grant, deadline=begun + reply.TTL * 1_000_000_000, assumed=False)

    def release(self, grant: Grant) -> None:
        if not self._run(self._held.pop(grant.secret).release()):
            raise Failed("not-held", "the key is not this holder's any more")

    def close(self) -> None:
        with suppress(Failed):
            self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)


LOCK = LockType(
    name="aetcd",
    what="library aetcd (PyPI): its lock, through one server of an etcd cluster",
    make=AetcdLock,
    servers=3,
    kind="etcd",
    options={
        "token": Option("revision", ("revision", "none"), what="of the put that took the lock"),
        "wait_ms": Option(1000, least=1, what="how long acquire waits for the lock"),
        "node_timeout_ms": Option(1000, least=1, what="how long one request may take"),
    },
    library="aetcd",
    least_ttl_ms=2000,
    whole_seconds=True,
    # Each lock has its own lease, which closing the client does not revoke.
    ends_with="lease",
)
