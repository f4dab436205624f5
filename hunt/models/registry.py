"""Lists the models, those of fencepost and of installed packages, and the stores that they
offer."""

from __future__ import annotations

from collections.abc import Callable

from fencepost.hunt.models.etcd import model as etcd
from fencepost.hunt.models.kubernetes import model as kubernetes
from fencepost.hunt.models.model import Model, Storage
from fencepost.hunt.models.postgres import model as postgres
from fencepost.hunt.models.redis import model as redis
from fencepost.hunt.models.zookeeper import model as zookeeper
from fencepost.hunt.sim.network import Server
from fencepost.registry import Registry

MODELS: Registry[Model] = Registry(
    "fencepost.models",
    Model,
    (
        redis.MODEL,
        etcd.MODEL,
        zookeeper.MODEL,
        kubernetes.MODEL,
        postgres.MODEL,
        postgres.POOLED,
    ),
)


def stores() -> list[str]:
    """Return the stores in which a resource can be kept."""
    return [store for model in MODELS.values() for store in model.stores]


def storage(store: str, site: Storage) -> Server:
    """Create the server on the storage node, for a resource in this store (one of `stores`)."""
    return MODELS.derived(_makers)[store](site)


def _makers() -> dict[str, Callable[[Storage], Server]]:
    """Return the makers of all stores, of each by the first model that offers it."""
    found: dict[str, Callable[[Storage], Server]] = {}
    for model in MODELS.values():
        found = {**model.stores, **found}
    return found
