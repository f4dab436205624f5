"""The model of ZooKeeper: one server, or an ensemble."""

from __future__ import annotations

from fencepost.hunt.models.model import Model
from fencepost.hunt.models.zookeeper.ensemble import Ensemble
from fencepost.hunt.models.zookeeper.server import ZooKeeperServer
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.setting import Setting


def _servers(setting: Setting, network: Network) -> list[Server]:
    ensemble = Ensemble(network)
    return [ZooKeeperServer(name, index, ensemble) for index, name in enumerate(setting.servers)]


MODEL = Model("zookeeper", servers=_servers, title="ZooKeeper", sockets=True, client="kazoo.client")
