"""The lock of etcd's clients: a key with a lease under a prefix, in order of creation.

It follows the `concurrency` package of etcd's Go client (Mutex): each waiter writes a key
prefix/lease; the lowest create revision holds; the others wait for the deletion of the last key
before their own. After the wait a client checks its own key again, because its lease may have
expired meanwhile (etcd #11456). The create revision is the token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate
from fencepost.workloads.contract.locktype import LockType, Reference
from fencepost.workloads.contract.option import WAITS, Option
from fencepost.workloads.locks.etcd_session import Session
from fencepost.workloads.transport.etcd_gateway import Gateway, after, key_is, plain, text

# A watch on a server that is cut off stays silent, so it is repeated elsewhere at this interval.
_WATCH_S = 1.0


class EtcdLock:
    """`options`: wait_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._options = options
        timeout_s = options["node_timeout_ms"] / 1000
        addresses = [env.address(node) for node in nodes]
        env.random.shuffle(addresses)
        self._gateway = Gateway(addresses, timeout_s, env.now, env.pool)
        self._session = Session(env, nodes, timeout_s)
        # Keys whose release did not reach etcd, with their revisions. The lease keeps them, and the
        # next grant would reuse the old key, with the old token.
        self._left: dict[str, int] = {}

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        until = self._env.now() + self._options["wait_ms"] * 1_000_000
        session = self._session
        prefix = f"fencepost/lock/{name}/"
        key = f"{prefix}{session.open(ttl_ns):x}"
        revision = 0
        try:
            self._give_back(key)
            revision = self._enqueue(key, session.lease)
            wakeups = self._wait(prefix, revision, until)
            deadline = session.beat()
            if self._gateway.created(key) != revision:
                raise Failed("not-granted", "the lease ended while the client was waiting")
        except Failed as error:
            self._leave(key, revision)
            if isinstance(error, Indeterminate) or error.kind == "not-held":
                raise Failed("not-granted", error.text) from error
            raise
        self._env.failpoint("replies-in-flight")
        secret = f"{key} {revision}"
        session.hold(secret)
        return Grant(name, revision, deadline, secret, wakeups=wakeups, sequencer=(key, revision))

    def _give_back(self, key: str) -> None:
        """Delete the key of a hold that could not be released."""
        revision = self._left.get(key)
        if revision is not None:
            self._gateway.delete_if(key, revision)
            del self._left[key]

    def _enqueue(self, key: str, lease: int) -> int:
        """Write the client's key, once; return its create revision."""
        body = {
            "compare": [key_is(key, 0)],
            "success": [{"request_put": {"key": text(key), "lease": str(lease)}}],
            "failure": [{"request_range": {"key": text(key)}}],
        }
        # If the request is repeated, the second one finds the key of the first.
        answer = self._gateway.ask("kv/txn", body)
        if answer.get("succeeded"):
            return int(answer["header"]["revision"])
        return int(answer["responses"][0]["response_range"]["kvs"][0]["create_revision"])

    def _wait(self, prefix: str, revision: int, until: int) -> int:
        """Wait until no key precedes the client's own; return how often it was woken."""
        wakeups = 0
        while True:
            before = {
                "key": text(prefix),
                "range_end": text(after(prefix)),
                "sort_order": "DESCEND",
                "sort_target": "CREATE",
                "max_create_revision": str(revision - 1),
                "limit": "1",
            }
            answer = self._gateway.ask("kv/range", before)
            if not answer.get("kvs"):
                return wakeups
            left_s = (until - self._env.now()) / 1e9
            if left_s <= 0:
                raise Failed("not-granted", f"not its turn within {self._options['wait_ms']} ms")
            seen = int(answer["header"]["revision"])
            wakeups += self._gateway.wait_deleted(
                plain(answer["kvs"][0]["key"]), seen + 1, min(left_s, _WATCH_S)
            )

    def _leave(self, key: str, revision: int) -> None:
        """Delete the client's key: the client no longer waits, so it must not be granted the lock.

        A request that arrives late must not delete the key of a later attempt, which has the same
        name.
        """
        try:
            revision = revision or self._gateway.created(key)
            if revision:
                self._gateway.leave(key, revision)
        except Failed as error:
            raise Indeterminate("timeout", f"could not leave the queue: {error.text}") from error

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        return self._session.extend(grant)

    def release(self, grant: Grant) -> None:
        assert grant.sequencer is not None
        self._session.let_go(grant.secret)
        key, revision = grant.sequencer
        self._left[key] = revision
        deleted = self._gateway.delete_if(key, revision)
        del self._left[key]
        if not deleted:
            raise Failed("not-held", "the key is gone: the lease ended")

    def close(self) -> None:
        self._session.close()
        self._gateway.close()


LOCK = LockType(
    name="etcd",
    what="etcd's recipe: keys with leases, each waiting for the deletion of the one before it",
    make=EtcdLock,
    servers=3,
    kind="etcd",
    options={"token": Option("revision", ("revision",), what="of the key"), **WAITS},
    promises={"minority": True, "fifo": True, "one_wakeup": True},
    sequencer=True,
    least_ttl_ms=2000,
    whole_seconds=True,
    # A client that closes revokes its lease, and the keys go with it.
    ends_with="close",
    renews=True,
    reference=Reference(),
)
