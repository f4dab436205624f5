"""The stores that a resource can be kept in, by name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from fencepost.workloads.locks.lock import Env
from fencepost.workloads.resources.resource import Resource

STORES = {
    "redis": "fencepost.workloads.resources.redis_register:RedisRegister",
    "postgres": "fencepost.workloads.resources.postgres_register:PostgresRegister",
    "etcd": "fencepost.workloads.resources.etcd_register:EtcdRegister",
    "server": "fencepost.workloads.resources.served_register:ServedRegister",
}
"""Each store's class; imported when used, so that a client needs what it uses and no more."""


def open_store(
    store: str, guard: str, env: Env, storage: str, servers: Sequence[str], timeout_s: float
) -> Resource:
    """The resources in a store: on the node `storage`, or on the lock's `servers`."""
    module, _, name = STORES[store].partition(":")
    resource: Resource = getattr(import_module(module), name)(
        env, storage, servers, guard, timeout_s
    )
    return resource
