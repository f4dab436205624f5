"""Removing the nodes' network.

Docker 20.10 may keep an endpoint on a network whose container is gone, and then does not remove the
network ("has active endpoints"). Such an endpoint can often be disconnected by force; where it
cannot, only a restart of the Docker daemon removes it.
"""

from __future__ import annotations

from contextlib import suppress

from docker import DockerClient
from docker.errors import DockerException

from fencepost.harness.cluster import ours
from fencepost.harness.errors import Crashed


class NetworkLeft(Crashed):
    """Every node is removed and their network is not: no verdict depends on it."""


def remove(client: DockerClient) -> None:
    """Remove our networks, which have no container any more, endpoints by force.

    Raises:
        NetworkLeft: naming the network, what Docker said, and what to do.
        DockerException: Docker does not list its networks.
    """
    for network in ours.networks(client):
        try:
            # Only the network itself lists what is on it.
            network.reload()
            for id, endpoint in (network.attrs.get("Containers") or {}).items():
                with suppress(DockerException):
                    # An endpoint without a container has no id that Docker would find.
                    network.disconnect(endpoint.get("Name") or id, force=True)
            network.remove()
        except DockerException as error:
            raise NetworkLeft(
                f"every node is removed, but not their network {network.name}: Docker keeps an "
                "endpoint on it, a known defect of Docker 20.10. Restart the Docker daemon "
                f"(`systemctl restart docker`), then run `fencepost heal`. Docker said: {error}"
            ) from error
