"""Servers that are there already, in containers that are not ours: looked at, and not changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from docker import DockerClient
from docker.errors import NotFound
from docker.models.containers import Container

from fencepost.harness.cluster.docker_calls import asked
from fencepost.harness.cluster.sidecar import Target
from fencepost.harness.errors import BadArguments
from fencepost.harness.servers.external_names import Named

_BRIDGE = "bridge"


def target(client: DockerClient, server: Named, container: str) -> Target:
    """Look at a server's container.

    Raises:
        BadArguments: it does not run, nothing of it can be reached, or its port is not known.
    """
    found = None
    with asked(f"show the container {container}"), suppress(NotFound):
        found = client.containers.get(container)
    if found is None:
        raise BadArguments(f"there is no container {container!r}: `docker ps` lists those that run")
    _must_run(found)
    _must_have_its_own_network(found)
    port = server.port or (server.kind.port if server.kind else _exposed(found))
    return Target(
        node=server.node,
        container=str(found.id),
        name=str(found.name),
        image=_image(found),
        kind=server.kind.name if server.kind else "",
        port=str(port),
        network="",
    )


def _must_run(container: Container) -> None:
    state = container.attrs["State"]
    if not state["Running"] or state["Paused"] or state.get("Restarting"):
        raise BadArguments(
            f"the container {container.name} is not running, but {state['Status']}: "
            f"`docker {'unpause' if state['Paused'] else 'start'} {container.name}`"
        )


def _must_have_its_own_network(container: Container) -> None:
    mode = str(container.attrs["HostConfig"]["NetworkMode"])
    if mode in ("host", "none") or mode.startswith("container:"):
        raise BadArguments(
            f"the container {container.name} has no network of its own (network mode {mode}): "
            "faults of links would strike others, or nobody. Give it a network of its own"
        )


def _image(container: Container) -> str:
    return f"{container.attrs['Config']['Image']} ({container.attrs['Image'][:19]})"


def _exposed(container: Container) -> int:
    ports = [port for port in container.attrs["Config"].get("ExposedPorts") or {} if "/tcp" in port]
    if len(ports) != 1:
        raise BadArguments(
            f"which port does the server in {container.name} listen on? Its image exposes "
            f"{', '.join(ports) or 'none'}: write NAME:PORT"
        )
    return int(ports[0].partition("/")[0])


def common_network(client: DockerClient, targets: Sequence[Target]) -> str:
    """The network that all of these containers are in, one of a project's own if there are several.

    Raises:
        BadArguments: there is none, so that a client could not reach them all.
    """
    shared: dict[str, None] | None = None
    for one in targets:
        with asked(f"show the container {one.name}"):
            found = client.containers.get(one.container).attrs["NetworkSettings"]["Networks"]
        named = [name for name, end in found.items() if end.get("IPAddress")]
        shared = dict.fromkeys(name for name in named if shared is None or name in shared)
    if not shared:
        raise BadArguments(
            f"{', '.join(one.name for one in targets)} have no network in common, in which clients "
            "could reach them all: connect them to one (`docker network connect`)"
        )
    return sorted(shared, key=lambda name: name == _BRIDGE)[0]


def described(targets: Mapping[str, Target]) -> str:
    """Which container each server is, for test.json."""
    return ", ".join(f"{node}: {one.name}, {one.image}" for node, one in targets.items())
