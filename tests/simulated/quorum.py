"""The servers of a quorum: each has leases of its own, by its own clock, and knows of no other.

A sound server keeps its keys when it stops, and counts leases by a clock that only time moves. Its
rate is off by no more than the client library allows for (`drift`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.simulated.cluster import Cluster
from tests.simulated.defects import Defect
from tests.simulated.state import Owner
from tests.simulated.world import World


@dataclass
class Key:
    """A server's entry of a lock; `expires` by its clock."""

    owner: Owner
    expires: int


class Quorum:
    """`order`: the place of each grant among all, by when a majority of servers had given it."""

    def __init__(
        self, world: World, cluster: Cluster, drift: float, order: dict[Owner, int], defect: Defect
    ) -> None:
        self._world = world
        self._cluster = cluster
        self._defect = defect
        self._order = order
        self._yes: dict[Owner, set[str]] = {}
        self._keys: dict[str, dict[str, Key]] = {name: {} for name in cluster.names}
        random = world.random
        self._rates = {name: 1 + random.uniform(-drift, drift) for name in cluster.names}

    @property
    def majority(self) -> int:
        return len(self._keys) // 2 + 1

    def take(self, server: str, lock: str, owner: Owner, ttl: int) -> bool:
        keys, now = self._keys[server], self._clock(server)
        key = keys.get(lock)
        if key is not None and key.expires > now:
            return key.owner == owner and self._defect.strikes("retries_own_key")
        keys[lock] = Key(owner, now + ttl)
        yes = self._yes.setdefault(owner, set())
        yes.add(server)
        if len(yes) >= self.majority:
            self._order.setdefault(owner, len(self._order) + 1)
        return True

    def extend(self, server: str, lock: str, owner: Owner, ttl: int) -> bool:
        key = self._mine(server, lock, owner)
        if key is not None:
            key.expires = self._clock(server) + ttl
        return key is not None

    def drop(self, server: str, lock: str, owner: Owner) -> bool:
        mine = self._mine(server, lock, owner) is not None
        if mine:
            del self._keys[server][lock]
        return mine

    def wipe(self, servers: Iterable[str]) -> None:
        """Forget the keys of servers that stop: a defect, the lack of persistence."""
        for server in servers:
            if self._keys.get(server) and self._defect.strikes("server_forgets"):
                self._keys[server].clear()

    def _mine(self, server: str, lock: str, owner: Owner) -> Key | None:
        key = self._keys[server].get(lock)
        alive = key is not None and key.expires > self._clock(server)
        return key if key is not None and alive and key.owner == owner else None

    def _clock(self, server: str) -> int:
        offset = self._cluster.servers[server].offset
        jumped = offset if offset and self._defect.strikes("clock_jumps") else 0
        return int(self._world.now * self._rates[server]) + jumped
