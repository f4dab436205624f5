"""What Docker keeps for us, told from what it keeps for others, and of which of our clusters it is.

A Compose project is known by its name alone, and somebody else may have one of the same name. So
all that we create has a label of our own, and nothing without it is counted, used or removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from docker import DockerClient
from docker.models.containers import Container
from docker.models.networks import Network

from fencepost.harness.cluster.docker_calls import asked
from fencepost.harness.errors import Crashed

LABEL = "io.fencepost.cluster"
LABELS = {LABEL: "fencepost"}
"""What every container and network of ours has. We create no volume with a name."""
PROGRAM_OF = "io.fencepost.program-of"
"""Of a container that is no node, but beside the node that this names (clientimage.py)."""
NETWORK = "cluster"
"""What the nodes' network is called in its project."""
# What containers of older versions have.
_OLDER_LABEL = "fencepost.node"

_PROJECT, _SERVICE = "com.docker.compose.project", "com.docker.compose.service"
# What Compose's own commands ask of a container beside: its number, and whether it is a service's.
_OF_ONE = {"com.docker.compose.container-number": "1", "com.docker.compose.oneoff": "False"}


def labels(project: str, service: str) -> dict[str, str]:
    """What a container of ours has, so that Compose shows it as one of a project."""
    return LABELS | {_PROJECT: project, _SERVICE: service, **_OF_ONE}


def of_network(project: str) -> dict[str, str]:
    """The labels of a project's network."""
    return LABELS | {_PROJECT: project, "com.docker.compose.network": NETWORK}


def service_of(container: Container) -> str:
    """What a container is called in its project; '' for a program beside a node."""
    return str(container.labels.get(_SERVICE, ""))


def program_of(node: str, project: str) -> dict[str, str]:
    """The labels of a container beside a node of a project."""
    return {**LABELS, _PROJECT: project, PROGRAM_OF: node}


def containers(
    client: DockerClient, project: str | None = None, all: bool = True
) -> list[Container]:
    """Our containers, of one project or of all: all, or those that run. Called within `asked`."""
    found = client.containers.list(all=all, filters=_of(project), ignore_removed=True)
    return [one for one in found if _is_ours(one.labels)]


def networks(client: DockerClient, project: str | None = None) -> list[Network]:
    """Our networks, of one project or of all, with or without a node. Called within `asked`."""
    found = client.networks.list(filters=_of(project))
    return [one for one in found if _is_ours(one.attrs.get("Labels"))]


def projects(client: DockerClient) -> set[str]:
    """The projects of which Docker keeps anything of ours. Called within `asked`."""
    of_containers = {str(one.labels[_PROJECT]) for one in containers(client)}
    return of_containers | {str(one.attrs["Labels"][_PROJECT]) for one in networks(client)}


def must_be_alone(client: DockerClient, project: str) -> None:
    """Raise Crashed if somebody else has anything under the project's name, and name it."""
    with asked("list what it keeps"):
        foreign = list(_foreign(client, project))
    if foreign:
        raise Crashed(
            f"There is a Compose project {project!r} that is not fencepost's own, with "
            f"{', '.join(foreign)}. It is left alone, and no node can be started beside it. Give "
            "it another name (`docker compose -p NAME ...`, or `name:` in its file). If an older "
            "version of fencepost has left it, remove it (`docker network rm ...`)"
        )


def _of(project: str | None) -> dict[str, str | list[str] | bool]:
    return {"label": _PROJECT if project is None else f"{_PROJECT}={project}"}


def _foreign(client: DockerClient, project: str) -> Iterator[str]:
    for container in client.containers.list(all=True, filters=_of(project), ignore_removed=True):
        if not _is_ours(container.labels):
            yield f"the container {container.name}"
    for network in client.networks.list(filters=_of(project)):
        if not _is_ours(network.attrs.get("Labels")):
            yield f"the network {network.name}"
    for volume in client.volumes.list(filters=_of(project)):
        yield f"the volume {volume.name}"


def _is_ours(labels: Mapping[str, Any] | None) -> bool:
    return bool({LABEL, _OLDER_LABEL} & set(labels or {}))
