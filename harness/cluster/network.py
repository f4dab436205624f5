"""Removing the nodes' network.

Docker 20.10 may keep an endpoint on a network whose container is gone, and then does not remove the
network ("has active endpoints"). One that it lists can be disconnected by force. It also counts
them, and now and then one too many where several came or went at once; the count is only set right
when the Docker daemon starts.
"""

from __future__ import annotations

from contextlib import suppress

from docker import DockerClient
from docker.errors import DockerException

from fencepost.harness.cluster import labels
from fencepost.harness.errors import Crashed

KNOWN_DEFECT = "a known defect of Docker 20.10"


class NetworkLeft(Crashed):
    """Every node is removed and their network is not: no verdict depends on it."""


def remove(client: DockerClient, project: str) -> None:
    """Remove a project's networks, which have no container any more, endpoints by force.

    Raises:
        NetworkLeft: naming the network, what Docker said, and what to do.
        DockerException: Docker does not list its networks.
    """
    for network in labels.networks(client, project):
        listed: list[str] = []
        try:
            # Only the network itself lists what is on it.
            network.reload()
            for id, endpoint in (network.attrs.get("Containers") or {}).items():
                # An endpoint without a container has no id that Docker would find.
                listed.append(endpoint.get("Name") or id)
                with suppress(DockerException):
                    network.disconnect(listed[-1], force=True)
            network.remove()
        except DockerException as error:
            raise NetworkLeft(
                f"every node is removed, but not their network {network.name}: Docker counts an "
                f"endpoint on it ({', '.join(listed) or 'and lists none'}), {KNOWN_DEFECT}. "
                "Restart the Docker daemon (`systemctl restart docker`), then run "
                f"`fencepost heal`. Docker said: {error}"
            ) from error
