"""A Link to one Redis server, over redis-py's connection.

It uses the connection rather than the client, for two reasons. A test must be able to stop the
process after the request was sent and before the reply is read. And the client retries by itself
(10 times in redis-py 8.1), so that one silent server costs tens of seconds, and a SET NX whose
reply was lost is sent again and finds its own key. Redlock requires one try and a short timeout.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from redis.backoff import NoBackoff
from redis.connection import AbstractConnection, Connection
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as TimedOut
from redis.retry import Retry

from fencepost.workloads.contract.lock import Failed, Indeterminate

# RESP2 without client information: connecting then sends nothing of its own, so that the timeout is
# that of the one request. A library under test may bring an older redis-py with other arguments:
# driver_info is new in 8, lib_name and protocol in 5.
_WORDS = signature(AbstractConnection.__init__).parameters
_SILENT: dict[str, Any] = {"protocol": 2} if "protocol" in _WORDS else {}
if "driver_info" in _WORDS:
    _SILENT["driver_info"] = None
elif "lib_name" in _WORDS:
    _SILENT |= {"lib_name": None, "lib_version": None}


class RedisLink:
    """A link that connects on first use, and again after an error; a reply never meets another
    request."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self.address = f"{host}:{port}"
        self._connection = Connection(
            host=host,
            port=port,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
            **_SILENT,
        )
        self._connected = False

    def open(self) -> None:
        """Connect unless connected. Raises Failed."""
        try:
            self._drop_if_stale()
            self._connection.connect()
            self._connected = True
        except (RedisError, OSError) as error:
            raise Failed("unreachable", f"{self.address}: {error}") from error

    def getsockname(self) -> tuple[str, int]:
        """Return the local address, as a socket does. Raises OSError if it is not connected."""
        connected = self._connection._sock
        if connected is None:
            raise OSError(f"{self.address}: not connected")
        host, port = connected.getsockname()[:2]
        return str(host), int(port)

    def send(self, *command: Any) -> None:
        self.open()
        try:
            self._connection.send_command(*command)
        except (RedisError, OSError) as error:
            self._disconnect()
            raise Indeterminate("timeout", f"{self.address}: {error}") from error

    def _drop_if_stale(self) -> None:
        """Drop a connection whose server has gone away since; it is readable then."""
        if self._connected:
            try:
                stale = self._connection.can_read(timeout=0)
            except (RedisError, OSError):
                stale = True
            if stale:
                self._disconnect()

    def receive(self) -> Any:
        try:
            return self._connection.read_response()
        except ResponseError as error:
            raise Failed("refused", f"{self.address}: {error}") from error
        except (TimedOut, Unreachable, OSError) as error:
            self._disconnect()
            raise Indeterminate("timeout", f"{self.address}: {error}") from error

    def call(self, *command: Any) -> Any:
        self.send(*command)
        return self.receive()

    def close(self) -> None:
        self._disconnect()

    def _disconnect(self) -> None:
        self._connected = False
        self._connection.disconnect()
