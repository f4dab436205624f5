"""Removes the nodes' network, despite a defect of Docker 20.10.

Docker 20.10 may keep the endpoint of a removed container on a network, and then refuses to remove
the network ("has active endpoints"). An endpoint that it lists can be disconnected by force. But
its count of endpoints may also be too high after several joined or left at the same time. Only a
restart of the Docker daemon corrects the count.
"""

from __future__ import annotations

from contextlib import suppress

from docker import DockerClient
from docker.errors import DockerException

from fencepost.harness.cluster import labels
from fencepost.harness.errors import Crashed

KNOWN_DEFECT = "a known defect of Docker 20.10"


class NetworkLeft(Crashed):
    """Every node is removed, but not their network. No verdict depends on it."""


def remove(client: DockerClient, project: str) -> None:
    """Remove a project's networks after its containers; disconnect stale endpoints by force.

    Raises:
        NetworkLeft: a network could not be removed; the text has Docker's message and a remedy.
        DockerException: Docker does not list its networks.
    """
    for network in labels.networks(client, project):
        listed: list[str] = []
        try:
            # Only the network itself lists its endpoints.
            network.reload()
            for id, endpoint in (network.attrs.get("Containers") or {}).items():
                # Docker finds an endpoint without a container by its name, not by its id.
                listed.append(endpoint.get("Name") or id)
                with suppress(DockerException):
                    network.disconnect(listed[-1], force=True)
            network.remove()
        except DockerException as error:
            raise NetworkLeft(
                f"every node is removed, but not their network {network.name}: Docker counts an "
                f"endpoint on it ({', '.join(listed) or 'but lists none'}), {KNOWN_DEFECT}. "
                "Restart the Docker daemon (`systemctl restart docker`), then run "
                f"`fencepost heal`. Docker said: {error}"
            ) from error
