"""The model of etcd: a cluster, and a resource's server that checks each write with it."""

from __future__ import annotations

from fencepost.hunt.models.etcd.server import LOOK, Cluster, EtcdServer
from fencepost.hunt.models.etcd.words import answered, asked
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
    live=True,
    least_ttl_ms=1000,  # a lease has whole seconds
    slack_ns=lambda setting: LOOK,
    outage="both",
    sockets=True,
    # The lock's own servers keep the resource, so the server on the storage node does not matter.
    stores={"etcd": redis.storage, "server": SequencerServer},
    asked=asked,
    answered=answered,
)
