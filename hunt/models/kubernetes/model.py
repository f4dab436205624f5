"""The model of Kubernetes: API servers on one store."""

from __future__ import annotations

from fencepost.hunt.models.kubernetes.server import KubernetesServer
from fencepost.hunt.models.kubernetes.state import State
from fencepost.hunt.models.model import Model
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.setting import Setting


def _servers(setting: Setting, network: Network) -> list[Server]:
    state = State()
    return [
        KubernetesServer(name, index, network, state) for index, name in enumerate(setting.servers)
    ]


MODEL = Model(
    "kubernetes",
    servers=_servers,
    live=True,
    least_ttl_ms=1000,  # a lease has whole seconds
    sockets=True,
)
