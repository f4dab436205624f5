"""The models by name, ours and those of installed packages, and the stores that they offer."""

from __future__ import annotations

from fencepost.hunt.models.etcd import model as etcd
from fencepost.hunt.models.model import Model, Storage
from fencepost.hunt.models.redis import model as redis
from fencepost.hunt.sim.network import Server
from fencepost.registry import Registry

MODELS: Registry[Model] = Registry("fencepost.models", Model, (redis.MODEL, etcd.MODEL))


def stores() -> list[str]:
    """What a resource can be kept in."""
    return [store for model in MODELS.values() for store in model.stores]


def storage(store: str, site: Storage) -> Server:
    """The server on the storage node, for a resource in this store (one of `stores`)."""
    return next(m.stores[store] for m in MODELS.values() if store in m.stores)(site)
