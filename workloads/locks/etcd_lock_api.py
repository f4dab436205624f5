"""The lock service of the etcd server itself: /v3/lock/lock and /v3/lock/unlock.

The client trusts the server, as most do: an answer of 200 is the lock. On 3.4 that is wrong for a
waiter whose lease has expired meanwhile (etcd #11456); 3.5 refuses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate
from fencepost.workloads.contract.option import WAITS, Option
from fencepost.workloads.locks import etcd
from fencepost.workloads.locks.etcd_session import Session
from fencepost.workloads.transport.etcd_gateway import Gateway, plain, read, text
from fencepost.workloads.transport.request_link import dial


class EtcdLockApi:
    """`options`: token (none, revision), node (any, own), wait_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        if options["node"] == "own":
            nodes = [env.random.choice(nodes)]
        self._env = env
        self._nodes = nodes
        self._options = options
        self._timeout_s = options["node_timeout_ms"] / 1000
        addresses = [env.address(node) for node in nodes]
        env.random.shuffle(addresses)
        self._gateway = Gateway(addresses, self._timeout_s, env.now, env.pool)
        self._session = Session(env, nodes, self._timeout_s, self._over)
        self._mutex = env.mutex()
        self._waits_with = 0  # the lease of the request that waits for the lock

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        session = self._session
        answer = self._lock(f"fencepost/{name}", session.open(ttl_ns))
        key = plain(answer["key"])
        token = None
        if self._options["token"] == "revision":
            # The key's own revision; under contention the reply has another one.
            token = self._gateway.created(key) or int(answer["header"]["revision"])
        session.hold(key)
        sequencer = None if token is None else (key, token)
        return Grant(name, token, session.deadline, key, sequencer=sequencer)

    def _lock(self, name: str, lease: int) -> Any:
        """Ask a server and wait for its answer; ask the next one if it cannot be reached."""
        why: Failed | None = None
        for node in self._env.random.sample(self._nodes, len(self._nodes)):
            try:
                return self._asked(node, name, lease)
            except Failed as error:
                if error.kind != "unreachable":
                    raise
                why = error
        assert why is not None
        raise why

    def _asked(self, node: str, name: str, lease: int) -> Any:
        """Ask one server, which answers within `wait_ms`."""
        host, port = self._env.address(node)
        wait_s = self._options["wait_ms"] / 1000
        link = (self._env.dial or dial)("http", host, port, self._timeout_s, wait_s)
        try:
            self._set_waiting(lease)
            link.send("lock/lock", json.dumps({"name": text(name), "lease": str(lease)}))
            self._env.failpoint("replies-in-flight")
            return read(host, "lock/lock", *link.receive())
        except Indeterminate as error:
            if "session is expired" in error.text:
                raise Failed("not-granted", error.text) from error
            raise
        finally:
            self._set_waiting(0)
            link.close()

    def _set_waiting(self, lease: int) -> None:
        with self._mutex:
            self._waits_with = lease

    def _over(self, lease: int) -> None:
        # The server waits on behalf of this lease: a grant after its end would be wrong. By now the
        # client may wait with another one, which no server has called expired.
        try:
            if self._gateway.lives(lease):
                return
        except Failed:
            return
        with self._mutex:
            if self._waits_with == lease:
                self._env.expired(f"etcd says that lease {lease:x} is gone")

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        return self._session.extend(grant)

    def release(self, grant: Grant) -> None:
        self._session.let_go(grant.secret)
        self._gateway.call("lock/unlock", {"key": text(grant.secret)})

    def close(self) -> None:
        self._session.close()
        self._gateway.close()


LOCK = replace(
    etcd.LOCK,
    name="etcd-lock-api",
    reference=None,
    what="the lock service of the etcd server itself, trusted as it answers",
    make=EtcdLockApi,
    options={
        "token": Option("none", ("none", "revision"), what="of the key in its answer"),
        "node": Option("any", ("any", "own"), what="servers that a client uses: any, or one only"),
        **WAITS,
    },
    promises={"minority": True, "fifo": True},
    withdraws={"node=own": ("minority",)},
    sequencer=False,
)
