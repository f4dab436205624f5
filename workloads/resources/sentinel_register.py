"""Registers in the Redis servers of the lock, behind Sentinel: a failover affects both.

Writes that the primary acknowledged but did not send to the promoted replica are lost, as any data
kept there is (Jepsen: Redis, 2013).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.guard import ACCEPT
from fencepost.workloads.contract.lock import Failed, Indeterminate
from fencepost.workloads.contract.store import Opening, Store
from fencepost.workloads.locks.libraries.redis_client import primary
from fencepost.workloads.resources.redis_register import RedisRegister
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    from redis import exceptions
else:
    exceptions = Deferred("redis.exceptions")


class _Primary:
    """A connection to the server that the sentinels name as the primary."""

    def __init__(self, at: Opening) -> None:
        load(exceptions)
        options = {"node_timeout_ms": round(at.timeout_s * 1000), "client_retries": 0}
        self._client: Any = primary(at.env, at.servers, options)

    def call(self, *command: Any) -> Any:
        try:
            return self._client.execute_command(*command)
        except exceptions.ReadOnlyError as error:
            raise Failed("unreachable", f"it is a replica by now: {error}") from error
        except exceptions.RedisError as error:
            raise Indeterminate("timeout", repr(error)) from error

    def close(self) -> None:
        self._client.close()


STORE = Store(
    "sentinel",
    "the same hash in the lock's own servers, behind Sentinel",
    lambda at: RedisRegister(at, _Primary(at)),
    beside="sentinel",
    rules={"none": ACCEPT["lua"]},
)
