"""The registries of guards and stores: built-in ones, a line each, and those of installed
packages."""

from __future__ import annotations

from fencepost.registry import Registry
from fencepost.workloads.contract.guard import Guard
from fencepost.workloads.contract.store import Store
from fencepost.workloads.resources import (
    etcd_register,
    mariadb_register,
    nats_register,
    postgres_register,
    redis_register,
    sentinel_register,
    served_register,
)
from fencepost.workloads.resources.guards import (
    broken_as_text,
    check_sequencer,
    compare_and_set,
    deadline,
    fenced,
    fenced_version,
    new_value,
    none,
    paired,
    transaction,
)

GUARDS = Registry(
    "fencepost.guards",
    Guard,
    (
        none.GUARD,
        deadline.GUARD,
        fenced.GUARD,
        fenced_version.GUARD,
        new_value.GUARD,
        paired.GUARD,
        compare_and_set.GUARD,
        check_sequencer.GUARD,
        transaction.GUARD,
        broken_as_text.GUARD,
    ),
)

STORES = Registry(
    "fencepost.stores",
    Store,
    (
        redis_register.STORE,
        sentinel_register.STORE,
        postgres_register.STORE,
        mariadb_register.STORE,
        nats_register.STORE,
        nats_register.BESIDE,
        etcd_register.STORE,
        served_register.STORE,
    ),
)


def keepers(guard: Guard) -> list[str]:
    """The stores that can keep a guard, the default one first."""
    return [store.name for store in STORES.sound()[0] if store.rule(guard) is not None]
