"""The model of Redis: one server, several independent ones, or a primary with a replica."""

from __future__ import annotations

from fencepost.hunt.models.model import Model, Storage
from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.models.redis.words import asked
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS


def _servers(setting: Setting, network: Network) -> list[Server]:
    found = [
        RedisServer(name, index, network, setting.persistence)
        for index, name in enumerate(setting.servers)
    ]
    if setting.replicated:
        for follower in found[1:]:
            follower.follow(found[0])
    return [*found]


def storage(site: Storage) -> Server:
    """Create a Redis that keeps all acknowledged writes."""
    return RedisServer(site.name, site.index, site.network, "always")


def _lease_ns(server: Server, now_ns: int) -> int:
    assert isinstance(server, RedisServer)
    now_ms = server.clock.ms(now_ns)
    return max(((ms - now_ms) * MS for ms in server.store.expires.values()), default=0)


MODEL = Model(
    "redis",
    servers=_servers,
    stores={"redis": storage},
    title="Redis",
    steps=True,
    live=True,
    gate=True,
    sockets=True,
    wall_leases=True,
    evicts=True,
    lease_ns=_lease_ns,
    asked=asked,
)
