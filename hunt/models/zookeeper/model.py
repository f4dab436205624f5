"""The model of ZooKeeper: one server, or an ensemble."""

from __future__ import annotations

from fencepost.hunt.models.model import Model
from fencepost.hunt.models.zookeeper.ensemble import Ensemble
from fencepost.hunt.models.zookeeper.server import ZooKeeperServer
from fencepost.hunt.models.zookeeper.sessions import USUAL, Timing, lasting
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.world import MS


def _timing(setting: Setting) -> Timing:
    # In real time, a program would wait for long for the end of the session that it asks for.
    return lasting(setting.ttl_ns // MS) if setting.live else USUAL


def _servers(setting: Setting, network: Network) -> list[Server]:
    ensemble = Ensemble(network, _timing(setting))
    return [ZooKeeperServer(name, index, ensemble) for index, name in enumerate(setting.servers)]


def _keeps_ns(server: Server) -> int:
    """Return the longest timeout of a session, with a tick by which its client was last heard
    later, and one by which its end comes later."""
    assert isinstance(server, ZooKeeperServer)
    longest_ms = server.ensemble.sessions.longest_ms
    return longest_ms * MS + 2 * USUAL.tick if longest_ms else 0


MODEL = Model(
    "zookeeper",
    servers=_servers,
    title="ZooKeeper",
    live=True,
    least_ttl_ms=500,
    slack_ns=lambda setting: _timing(setting).tick if setting.live else 0,
    keeps_ns=_keeps_ns,
    outage="replies",
    sockets=True,
    client="kazoo.client",
)
