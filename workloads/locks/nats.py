"""The lock of a NATS cluster: a key of a JetStream bucket, created only if it does not exist.

The bucket's maximum age is the TTL: each server drops a key whose last revision is older, by its
own wall clock. A renewal writes the key again, if its revision is still the one that this client
wrote. The token is the revision of the key as it was created: all keys of a bucket are counted
together, so it only rises.

If an answer is lost, the key may have a revision that its client does not know. Then the client
reads the key, and goes on with the revision that has its own value.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import POLLS, Option
from fencepost.workloads.locks.keepalive import Keepalive
from fencepost.workloads.locks.retry import tries
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    import asyncio

    import nats
    from nats import errors
    from nats.js import errors as stream_errors
    from nats.js.kv import KeyValue
else:
    # asyncio is always available, but slow to load, and every command imports this file.
    asyncio, nats = Deferred("asyncio"), Deferred("nats")
    errors, stream_errors = Deferred("nats.errors"), Deferred("nats.js.errors")

BUCKET = "fencepost"
# The codes by which the server refuses a write because the key has another revision.
_OTHER_REVISION = (10071, 10164)
_CLOSE_S = 2.0


class NatsLock:
    """`options`: token (revision, none), retries, retry_delay_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        load(asyncio, nats, errors, stream_errors)
        self._env = env
        self._options = options
        self._timeout_s = options["node_timeout_ms"] / 1000
        self._addresses = [env.address(node) for node in nodes]
        env.random.shuffle(self._addresses)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._client: Any = None
        self._bucket: KeyValue | None = None
        # The last known revision of each held key, by secret.
        self._held: dict[str, int] = {}
        self._keepalive = Keepalive(env)
        # The thread that renews writes keys, too.
        self._busy = env.mutex()

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        secret = self._env.random.randbytes(8).hex()
        bucket = self._bucket = self._bucket or self._answered(self._open(ttl_ns))
        for _ in tries(self._env, self._options):
            begun = self._env.now()
            try:
                revision = self._answered(bucket.create(name, secret.encode()))
            except Failed as error:
                if error.kind != "not-held":
                    raise
                continue
            token = revision if self._options["token"] == "revision" else None
            self._held[secret] = revision
            return self._kept(Grant(name, token, begun + ttl_ns, secret), begun + ttl_ns, ttl_ns)
        raise Failed("not-granted", f"the key existed at {self._options['retries'] + 1} tries")

    def _kept(self, grant: Grant, deadline: int, ttl_ns: int) -> Grant:
        renew = partial(self._beat, grant, ttl_ns)
        self._keepalive.watch(grant.secret, ttl_ns, deadline, renew)
        return grant

    async def _open(self, ttl_ns: int) -> KeyValue:
        """Connect, and return the bucket; make it if there is none."""
        self._client = self._client or await self._connect()
        streams = self._client.jetstream(timeout=self._timeout_s)
        try:
            found: KeyValue = await streams.key_value(BUCKET)
        except stream_errors.BucketNotFoundError:
            copies = len(self._addresses)
            found = await streams.create_key_value(bucket=BUCKET, ttl=ttl_ns / 1e9, replicas=copies)
        return found

    async def _connect(self) -> Any:
        connecting = nats.connect(
            servers=[f"nats://{host}:{port}" for host, port in self._addresses],
            dont_randomize=True,
            connect_timeout=self._timeout_s,
            # A server that has gone silently is left after three seconds.
            ping_interval=1,
            max_outstanding_pings=2,
            reconnect_time_wait=0.1,
            max_reconnect_attempts=-1,
            error_cb=_ignore,
        )
        # The library tries all servers again for as long as none answers.
        longest_s = self._timeout_s * len(self._addresses)
        try:
            return await asyncio.wait_for(connecting, longest_s)
        except (errors.Error, TimeoutError, OSError) as error:
            raise Failed("unreachable", repr(error)) from error

    def _answered(self, request: Coroutine[Any, Any, Any]) -> Any:
        with _translated():
            return asyncio.run_coroutine_threadsafe(request, self._loop).result()

    def _change(self, grant: Grant, write: Callable[[KeyValue, int], Awaitable[Any]]) -> Any:
        """Write the key if it is still this client's. Raises Failed "not-held" if not."""
        bucket, revision = self._bucket, self._held.get(grant.secret)
        if bucket is None or revision is None:
            raise Failed("not-held", "the hold has ended")

        async def change() -> Any:
            try:
                return await write(bucket, revision)
            except stream_errors.APIError as error:
                if not _has_other_revision(error):
                    raise
                entry = await bucket.get(grant.name)
                if entry.value != grant.secret.encode() or entry.revision in (None, revision):
                    raise
                return await write(bucket, entry.revision)

        return self._answered(change())

    def _beat(self, grant: Grant, ttl_ns: int) -> int:
        with self._busy:
            sent = self._env.now()
            self._held[grant.secret] = self._change(
                grant,
                lambda bucket, last: bucket.update(grant.name, grant.secret.encode(), last),
            )
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
                self._change(grant, lambda bucket, last: bucket.delete(grant.name, last))
            finally:
                self._held.pop(grant.secret, None)

    def close(self) -> None:
        """Close the connection. Keys stay until they are too old."""
        self._keepalive.close()
        client, self._client = self._client, None
        if client is not None:
            closing = asyncio.run_coroutine_threadsafe(client.close(), self._loop)
            with suppress(Exception):
                closing.result(_CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextmanager
def _translated() -> Iterator[None]:
    """Raise Failed for an answer that says no, and Indeterminate if there is none."""
    try:
        yield
    except stream_errors.KeyNotFoundError as error:
        raise Failed("not-held", "the key does not exist any more") from error
    except stream_errors.APIError as error:
        if _has_other_revision(error):
            raise Failed("not-held", "the key has another revision") from error
        raise Indeterminate("timeout", repr(error)) from error
    except (stream_errors.NoStreamResponseError, errors.NoServersError) as error:
        raise Failed("unreachable", repr(error)) from error
    except (errors.Error, TimeoutError, OSError) as error:
        raise Indeterminate("timeout", repr(error)) from error


def _has_other_revision(error: Exception) -> bool:
    """Return whether a write was refused for its revision: the library translates some refusals."""
    wrong = isinstance(error, stream_errors.KeyWrongLastSequenceError)
    return wrong or getattr(error, "err_code", None) in _OTHER_REVISION


async def _ignore(error: Exception) -> None:
    """Ignore what the library reports beside: each request has its own answer."""


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
