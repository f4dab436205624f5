"""kazoo's lock recipe (kazoo.recipe.lock.Lock) on a ZooKeeper cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.locks.libraries.errors import translated
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    from kazoo import client, exceptions, retry
    from kazoo.handlers import threading
    from kazoo.protocol import states
    from kazoo.recipe.lock import Lock
else:
    client, exceptions = Deferred("kazoo.client"), Deferred("kazoo.exceptions")
    retry, threading = Deferred("kazoo.retry"), Deferred("kazoo.handlers.threading")
    states = Deferred("kazoo.protocol.states")


class KazooLock:
    """`options`: token (czxid, none), wait_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        load(client, exceptions, retry, threading, states)
        self._env = env
        self._options = options
        self._hosts = ",".join(f"{host}:{port}" for host, port in map(env.address, nodes))
        self._client: client.KazooClient | None = None
        self._held: dict[str, Lock] = {}
        self._notices = 0

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        session = self._client = self._client or self._start(ttl_ns)
        lock = session.Lock(f"/fencepost/{name}")
        with translated(_trouble()):
            try:
                granted = lock.acquire(timeout=self._options["wait_ms"] / 1000)
                notices = self._notices
                there = granted and session.exists(f"{lock.path}/{lock.node}")
            except exceptions.LockTimeout as error:
                raise Failed("not-granted", str(error)) from error
        if not granted:
            raise Failed("not-granted", "acquire returned False")
        self._held[lock.prefix] = lock
        if self._notices != notices:
            self._env.lost(lock.prefix, "the connection was in doubt as the lock was granted")
        counted = self._options["token"] == "czxid" and there
        return Grant(name, there.czxid if counted else None, None, lock.prefix)

    def _start(self, ttl_ns: int) -> client.KazooClient:
        session = client.KazooClient(self._hosts, timeout=ttl_ns / 1e9)
        session.add_listener(self._listen)
        try:
            session.start(self._options["node_timeout_ms"] / 1000)
        except threading.KazooTimeoutError as error:
            raise Failed("unreachable", "no session with any server") from error
        return session

    def _listen(self, state: str) -> None:
        """Report all holds as lost; kazoo's documentation requires that in either state."""
        if state in (states.KazooState.SUSPENDED, states.KazooState.LOST):
            self._notices += 1
            for secret in list(self._held):
                self._env.lost(secret, f"the connection is {state}")
            # The recipe retries silently, at the queue's end if the session has expired.
            self._env.requeued(f"the connection is {state}")

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        raise Failed("not-held", "kazoo's lock lasts as long as the session; nothing extends it")

    def release(self, grant: Grant) -> None:
        with translated(_trouble()):
            released = self._held.pop(grant.secret).release()
        if not released:
            raise Failed("not-held", "release returned False")

    def close(self) -> None:
        if self._client is not None:
            self._client.remove_listener(self._listen)
            with suppress(Exception):
                self._client.stop()
            with suppress(Exception):
                self._client.close()


def _trouble() -> tuple[type[Exception], ...]:
    return exceptions.KazooException, threading.KazooTimeoutError, retry.RetryFailedError


LOCK = LockType(
    name="kazoo",
    what="library kazoo (PyPI): kazoo.recipe.lock.Lock on ZooKeeper",
    make=KazooLock,
    servers=3,
    kind="zookeeper",
    options={
        "token": Option("czxid", ("czxid", "none"), what="of the hold's znode"),
        "wait_ms": Option(10_000, least=1, what="how long acquire waits for the lock"),
        "node_timeout_ms": Option(1000, least=1, what="how long one request may take"),
    },
    promises={"minority": True, "fifo": True},
    library="kazoo",
    least_ttl_ms=1000,
    extends=False,
    # Closing the client ends its session, and the ephemeral znodes go with it.
    ends_with="close",
    renews=True,
)
