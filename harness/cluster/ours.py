"""What Docker keeps for us, told from what it keeps for others.

A Compose project is known by its name alone, and somebody else may have one of the same name. So
all that we create has a label of our own, and nothing without it is counted, used or removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from docker import DockerClient
from docker.models.containers import Container
from docker.models.networks import Network

from fencepost.harness.cluster.asking import asked
from fencepost.harness.errors import Crashed

PROJECT = "fencepost"
LABEL = "io.fencepost.cluster"
LABELS = {LABEL: PROJECT}
"""What every container and network of ours has. We create no volume with a name."""
# What containers of older versions have.
_OLDER_LABEL = "fencepost.node"

_OF_PROJECT: dict[str, str | list[str] | bool] = {"label": f"com.docker.compose.project={PROJECT}"}


def containers(client: DockerClient, all: bool = True) -> list[Container]:
    """Our containers: all, or those that run. Called within `asked`."""
    found = client.containers.list(all=all, filters=_OF_PROJECT)
    return [one for one in found if _is_ours(one.labels)]


def networks(client: DockerClient) -> list[Network]:
    """Our networks, with or without a node. Called within `asked`."""
    found = client.networks.list(filters=_OF_PROJECT)
    return [one for one in found if _is_ours(one.attrs.get("Labels"))]


def must_be_alone(client: DockerClient) -> None:
    """Raise Crashed if somebody else has anything under the project's name, and name it."""
    with asked("list what it keeps"):
        foreign = list(_foreign(client))
    if foreign:
        raise Crashed(
            f"There is a Compose project {PROJECT!r} that is not fencepost's own, with "
            f"{', '.join(foreign)}. It is left alone, and no node can be started beside it. Give "
            "it another name (`docker compose -p NAME ...`, or `name:` in its file). If an older "
            "version of fencepost has left it, remove it (`docker network rm ...`)"
        )


def _foreign(client: DockerClient) -> Iterator[str]:
    for container in client.containers.list(all=True, filters=_OF_PROJECT):
        if not _is_ours(container.labels):
            yield f"the container {container.name}"
    for network in client.networks.list(filters=_OF_PROJECT):
        if not _is_ours(network.attrs.get("Labels")):
            yield f"the network {network.name}"
    for volume in client.volumes.list(filters=_OF_PROJECT):
        yield f"the volume {volume.name}"


def _is_ours(labels: Mapping[str, Any] | None) -> bool:
    return bool({LABEL, _OLDER_LABEL} & set(labels or {}))
