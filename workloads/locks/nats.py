"""The lock of a NATS cluster: a key of a JetStream bucket, created only if it does not exist.

The bucket's maximum age is the TTL: each server drops a key whose last revision is older, by its
own wall clock. A renewal writes the key again, if its revision is still the one that this client
wrote. The token is the revision of the key as it was created: all keys of a bucket are counted
together, so it rises, unless killed servers lose the count (docs/locks.md).

If an answer is lost, the key may have a revision that its client does not know. Then the client
reads the key, and uses the revision that has its own value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from fencepost.workloads.contract.lock import Env, Failed, Grant
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import POLLS, Option
from fencepost.workloads.locks.keepalive import Keepalive
from fencepost.workloads.locks.retry import tries
from fencepost.workloads.transport.nats_bucket import Bucket, OtherRevision

T = TypeVar("T")

BUCKET = "fencepost"


class NatsLock:
    """`options`: token (revision, none), retries, retry_delay_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._options = options
        addresses = [env.address(node) for node in nodes]
        env.random.shuffle(addresses)
        self._bucket = Bucket(BUCKET, addresses, options["node_timeout_ms"] / 1000)
        # The last known revision of each held key, by secret.
        self._held: dict[str, int] = {}
        self._keepalive = Keepalive(env)
        # The thread that renews writes keys, too.
        self._busy = env.mutex()

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        secret = self._env.random.randbytes(8).hex()
        self._bucket.open(ttl_ns / 1e9)
        for _ in tries(self._env, self._options):
            begun = self._env.now()
            try:
                revision = self._bucket.create(name, secret.encode())
            except OtherRevision:
                continue
            token = revision if self._options["token"] == "revision" else None
            self._held[secret] = revision
            return self._kept(Grant(name, token, begun + ttl_ns, secret), begun + ttl_ns, ttl_ns)
        raise Failed("not-granted", f"the key existed at {self._options['retries'] + 1} tries")

    def _kept(self, grant: Grant, deadline: int, ttl_ns: int) -> Grant:
        renew = partial(self._beat, grant, ttl_ns)
        self._keepalive.watch(grant.secret, ttl_ns, deadline, renew)
        return grant

    def _change(self, grant: Grant, write: Callable[[int], T]) -> T:
        """Write the key if it is still this client's. Raises Failed "not-held" if not."""
        revision = self._held.get(grant.secret)
        if revision is None:
            raise Failed("not-held", "the hold has ended")
        try:
            return write(revision)
        except OtherRevision as error:
            entry = self._bucket.get(grant.name)
            if entry is None or entry.value != grant.secret.encode() or entry.revision == revision:
                raise Failed("not-held", str(error)) from error
        try:
            return write(entry.revision)
        except OtherRevision as error:
            raise Failed("not-held", str(error)) from error

    def _beat(self, grant: Grant, ttl_ns: int) -> int:
        with self._busy:
            sent = self._env.now()
            update = partial(self._bucket.update, grant.name, grant.secret.encode())
            self._held[grant.secret] = self._change(grant, update)
        return sent + ttl_ns

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        try:
            return replace(grant, deadline=self._beat(grant, ttl_ns))
        except Failed as error:
            if error.kind == "not-held":
                self._env.lost(grant.secret, error.text)
            raise

    def release(self, grant: Grant) -> None:
        self._keepalive.forget(grant.secret)
        with self._busy:
            try:
                self._change(grant, partial(self._bucket.delete, grant.name))
            finally:
                self._held.pop(grant.secret, None)

    def close(self) -> None:
        """Close the connection. Keys stay until they are too old."""
        self._keepalive.close()
        self._bucket.close()


LOCK = LockType(
    name="nats",
    what="three NATS servers: a key of a JetStream bucket whose keys expire",
    make=NatsLock,
    servers=3,
    kind="nats",
    options={
        "token": Option("revision", ("revision", "none"), what="of the key as it was created"),
        **POLLS,
        "node_timeout_ms": Option(1000, least=1, what="timeout for one request"),
    },
    promises={"minority": True},
    least_ttl_ms=1000,
    renews=True,
)
