"""A bucket of keys on NATS servers (JetStream), through nats-py, whose loop runs in a thread.

Requests raise OtherRevision if the key does not have the expected revision, Failed "unreachable" if
no server has taken the request, and Indeterminate if there is no answer.
"""

from __future__ import annotations

import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Failed, Indeterminate
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

# The codes by which the server refuses a write because the key has another revision.
_OTHER = (10071, 10164)
_CLOSE_S = 2.0


class OtherRevision(Exception):
    """The key has another revision, or does not exist."""


@dataclass(frozen=True)
class Entry:
    """A key's value, and the revision that wrote it."""

    value: bytes
    revision: int


class Bucket:
    """A bucket by name: `open` it before each request. `timeout_s` is for one request."""

    def __init__(self, name: str, addresses: Sequence[tuple[str, int]], timeout_s: float) -> None:
        load(asyncio, nats, errors, stream_errors)
        self._name = name
        self._servers = [f"nats://{host}:{port}" for host, port in addresses]
        self._timeout_s = timeout_s
        self._client: Any = None
        self._keys: KeyValue | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def open(self, age_s: float = 0.0) -> None:
        """Connect, and make the bucket if there is none, with a replica on each server.

        The servers drop a key that was not written for `age_s`, if it is not 0.
        """
        if self._client is None:
            self._client = self._answered(self._connect())
        if self._keys is None:
            self._keys = self._answered(self._find(age_s))

    def create(self, key: str, value: bytes) -> int:
        """Write a key that does not exist; return its revision."""
        return int(self._answered(self._opened.create(key, value)))

    def update(self, key: str, value: bytes, last: int) -> int:
        """Write a key that has this revision; return its new one."""
        return int(self._answered(self._opened.update(key, value, last)))

    def delete(self, key: str, last: int) -> None:
        """Delete a key that has this revision."""
        self._answered(self._opened.delete(key, last))

    def get(self, key: str) -> Entry | None:
        """Return a key's entry; None if it does not exist."""
        try:
            found = self._answered(self._opened.get(key))
        except OtherRevision:
            return None
        return Entry(found.value or b"", int(found.revision))

    @property
    def _opened(self) -> KeyValue:
        assert self._keys is not None, "it was not opened"
        return self._keys

    async def _connect(self) -> Any:
        connecting = nats.connect(
            servers=self._servers,
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
        longest_s = self._timeout_s * len(self._servers)
        try:
            return await asyncio.wait_for(connecting, longest_s)
        except (errors.Error, TimeoutError, OSError) as error:
            raise Failed("unreachable", repr(error)) from error

    async def _find(self, age_s: float) -> Any:
        streams = self._client.jetstream(timeout=self._timeout_s)
        try:
            return await streams.key_value(self._name)
        except stream_errors.BucketNotFoundError:
            copies = len(self._servers)
            return await streams.create_key_value(bucket=self._name, ttl=age_s, replicas=copies)

    def _answered(self, request: Coroutine[Any, Any, Any]) -> Any:
        with _translated():
            return asyncio.run_coroutine_threadsafe(request, self._loop).result()

    def close(self) -> None:
        """Close the connection, and end the loop."""
        client, self._client = self._client, None
        if client is not None:
            closing = asyncio.run_coroutine_threadsafe(client.close(), self._loop)
            with suppress(Exception):
                closing.result(_CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (stream_errors.KeyNotFoundError, stream_errors.KeyWrongLastSequenceError) as error:
        raise OtherRevision("the key has another revision, or does not exist") from error
    except stream_errors.APIError as error:
        if error.err_code in _OTHER:
            raise OtherRevision("the key has another revision") from error
        raise Indeterminate("timeout", repr(error)) from error
    except (stream_errors.NoStreamResponseError, errors.NoServersError) as error:
        raise Failed("unreachable", repr(error)) from error
    except (errors.Error, TimeoutError, OSError) as error:
        raise Indeterminate("timeout", repr(error)) from error


async def _ignore(error: Exception) -> None:
    """Ignore the library's reports on its connection: each request has its own answer."""
