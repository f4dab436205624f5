"""Labels everything that fencepost creates in Docker, and finds it by these labels.

A Compose project is identified only by its name, and another project may have the same name. So
all objects that fencepost creates have its label, and it counts, uses and removes no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from docker import DockerClient
from docker.models.containers import Container
from docker.models.networks import Network

from fencepost.harness.cluster.docker_calls import request
from fencepost.harness.errors import Crashed

LABEL = "io.fencepost.cluster"
LABELS = {LABEL: "fencepost"}
"""The label of every container and network of fencepost. It creates no named volumes."""
PROGRAM_OF = "io.fencepost.program-of"
"""The label of a client program's container; its value is the program's node (clientimage.py)."""
NETWORK = "cluster"
"""The name of the nodes' network in its project."""
# The label of containers of older versions.
_OLDER_LABEL = "fencepost.node"

_PROJECT, _SERVICE = "com.docker.compose.project", "com.docker.compose.service"
# Compose's commands also need a container's number, and whether it belongs to a service.
_OF_ONE = {"com.docker.compose.container-number": "1", "com.docker.compose.oneoff": "False"}


def labels(project: str, service: str) -> dict[str, str]:
    """Return the labels of a container, with those by which Compose shows it in a project."""
    return LABELS | {_PROJECT: project, _SERVICE: service, **_OF_ONE}


def of_network(project: str) -> dict[str, str]:
    """Return the labels of a project's network."""
    return LABELS | {_PROJECT: project, "com.docker.compose.network": NETWORK}


def service_of(container: Container) -> str:
    """Return the name of a container in its project; '' for a client program's container."""
    return str(container.labels.get(_SERVICE, ""))


def program_of(node: str, project: str) -> dict[str, str]:
    """Return the labels of the container of a client program."""
    return {**LABELS, _PROJECT: project, PROGRAM_OF: node}


def containers(
    client: DockerClient, project: str | None = None, all: bool = True
) -> list[Container]:
    """Return fencepost's containers of one project or of all projects. Call in `request`.

    `all`: also stopped ones.
    """
    found = client.containers.list(all=all, filters=_of(project), ignore_removed=True)
    return [one for one in found if _is_ours(one.labels)]


def networks(client: DockerClient, project: str | None = None) -> list[Network]:
    """Return fencepost's networks of one project or of all projects. Call in `request`."""
    found = client.networks.list(filters=_of(project))
    return [one for one in found if _is_ours(one.attrs.get("Labels"))]


def projects(client: DockerClient) -> set[str]:
    """Return the projects that have a container or network of fencepost. Call in `request`."""
    of_containers = {str(one.labels[_PROJECT]) for one in containers(client)}
    return of_containers | {str(one.attrs["Labels"][_PROJECT]) for one in networks(client)}


def must_be_alone(client: DockerClient, project: str) -> None:
    """Raise Crashed, with its objects, if another project has the same name."""
    with request("list its containers and networks"):
        foreign = list(_foreign(client, project))
    if foreign:
        raise Crashed(
            f"Another Compose project has the name {project!r}, with {', '.join(foreign)}, so no "
            "node can be started. Give that project another name (`docker compose -p NAME ...`, "
            "or `name:` in its file). If an older version of fencepost left it, remove it "
            "(`docker network rm ...`)"
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
