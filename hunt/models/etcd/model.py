"""The model of etcd: a cluster, and the resource's server that asks it with each write."""

from __future__ import annotations

from fencepost.hunt.models.etcd.server import Cluster, EtcdServer
from fencepost.hunt.models.model import Model
from fencepost.hunt.models.redis import model as redis
from fencepost.hunt.models.sequencer import SequencerServer
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.setting import Setting


def _servers(setting: Setting, network: Network) -> list[Server]:
    cluster = Cluster(network, looks=setting.version != "3.4")
    return [EtcdServer(name, index, cluster) for index, name in enumerate(setting.servers)]


MODEL = Model(
    "etcd",
    servers=_servers,
    # Kept by the lock's own servers: what is on the storage node then does not matter.
    stores={"etcd": redis.storage, "server": SequencerServer},
)
