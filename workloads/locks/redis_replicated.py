"""The lock on a Redis primary with an asynchronous replica, with failover.

A client asks the servers for their role and uses the one that reports master; it asks again once
that one is gone or has become a replica. The primary answers before its replica has the write, so
its last grants may be lost with it. With `wait` the client asks Redis how many replicas have the
key (WAIT), and releases the lock if they are too few. This narrows the gap but does not close it,
since a promotion does not choose the most recent replica (redis.io, WAIT).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate, Link
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import POLLS, Option
from fencepost.workloads.locks.redis import RedisLock
from fencepost.workloads.locks.retry import tries


class RedisReplicatedLock:
    """`options`: wait, token (none, incr), retries, retry_delay_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._nodes = list(nodes)
        self._options = options
        self._timeout_ms = options["node_timeout_ms"]
        self._links: dict[str, Link] = {
            node: env.connect(node, self._timeout_ms / 1000) for node in nodes
        }
        # One try at a time: between two tries the primary may change.
        once = {**options, "retries": 0}
        self._locks = {node: RedisLock(env, [node], once) for node in nodes}
        self._primary = ""

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        last: Failed = Failed("not-granted", "no try was made")
        for _ in tries(self._env, self._options):
            try:
                primary = self._find()
                grant = self._locks[primary].acquire(name, ttl_ns)
            except Indeterminate:
                self._primary = ""
                raise
            except Failed as error:
                if error.kind != "not-granted":
                    self._primary = ""
                last = error
                continue
            if self._options["wait"] and not self._replicated(primary, grant):
                last = Failed("not-granted", "too few replicas had the key in time")
                continue
            return replace(grant, secret=f"{primary} {grant.secret}")
        raise Failed("not-granted", last.text)

    def _find(self) -> str:
        """Return the server that reports to be the primary. Failed "unreachable" if none does."""
        if not self._primary:
            for node in self._nodes:
                with suppress(Failed):
                    if self._links[node].call("ROLE")[0] == "master":
                        self._primary = node
                        break
            else:
                raise Failed("unreachable", "no server reports that it is the primary")
        return self._primary

    def _replicated(self, primary: str, grant: Grant) -> bool:
        """WAIT on the connection that wrote: it counts the replicas that have that write."""
        count = self._locks[primary].link.call("WAIT", self._options["wait"], self._timeout_ms // 2)
        if int(count) >= self._options["wait"]:
            return True
        with suppress(Failed):
            self._locks[primary].release(grant)
        return False

    def _on(self, grant: Grant) -> tuple[RedisLock, Grant]:
        """Return the lock on the current primary, and the grant as it knows it."""
        secret = grant.secret.split()[1]
        return self._locks[self._find()], replace(grant, secret=secret)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        lock, inner = self._on(grant)
        try:
            return replace(lock.extend(inner, ttl_ns), secret=grant.secret)
        except Failed as error:
            self._forget(error)
            raise

    def release(self, grant: Grant) -> None:
        lock, inner = self._on(grant)
        try:
            lock.release(inner)
        except Failed as error:
            self._forget(error)
            raise

    def _forget(self, error: Failed) -> None:
        if error.kind != "not-held":
            self._primary = ""

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        for lock in self._locks.values():
            lock.close()


LOCK = LockType(
    name="redis-replicated",
    what="the same on a primary with an asynchronous replica, with failover",
    make=RedisReplicatedLock,
    servers=2,
    options={
        "token": Option("none", ("none", "incr"), what="INCR together with the SET"),
        "wait": Option(0, what="replicas that must have the key before it counts (WAIT)"),
        **POLLS,
        "node_timeout_ms": Option(200, least=1, what="how long one server may take to answer"),
    },
    replicated=True,
)
