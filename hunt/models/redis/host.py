"""The part of a Redis server that waiting clients and subscribers use."""

from __future__ import annotations

from abc import abstractmethod

from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.world import World


class Host(Server):
    """`primary`: the server that it follows, if any; `replica`: the one that follows it."""

    __slots__ = ("network", "primary", "replica", "store", "world")

    network: Network
    primary: Server | None
    replica: Server | None
    store: Store
    world: World

    @abstractmethod
    def attend(self) -> None:
        """Serve the clients that wait for a key."""

    @abstractmethod
    def listen(self) -> None:
        """Let those who wait for changes of keys hear of them."""

    @abstractmethod
    def sweep(self) -> None:
        """Delete expired keys, in a cycle."""
