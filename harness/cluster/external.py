"""Inspects external servers, in containers that fencepost did not create, without changing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from docker import DockerClient
from docker.errors import NotFound
from docker.models.containers import Container

from fencepost.harness.cluster.docker_calls import request
from fencepost.harness.cluster.sidecar import Target
from fencepost.harness.errors import BadArguments
from fencepost.harness.servers.external_names import Named

_BRIDGE = "bridge"


def target(client: DockerClient, server: Named, container: str) -> Target:
    """Inspect a server's container.

    Raises:
        BadArguments: it does not run, has no network of its own, or its port is not known.
    """
    found = None
    with request(f"inspect the container {container}"), suppress(NotFound):
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
            f"the container {container.name} has no network of its own (network mode {mode}), so "
            "link faults would affect other programs or none. Give it its own network"
        )


def _image(container: Container) -> str:
    return f"{container.attrs['Config']['Image']} ({container.attrs['Image'][:19]})"


def _exposed(container: Container) -> int:
    ports = [port for port in container.attrs["Config"].get("ExposedPorts") or {} if "/tcp" in port]
    if len(ports) != 1:
        raise BadArguments(
            f"the port of the server in {container.name} is not known (its image exposes "
            f"{', '.join(ports) or 'none'}): write NAME:PORT"
        )
    return int(ports[0].partition("/")[0])


def common_network(client: DockerClient, targets: Sequence[Target]) -> str:
    """Return a network that all these containers share, preferably one of a Compose project.

    Raises:
        BadArguments: they share no network, so a client could not reach them all.
    """
    shared: dict[str, None] | None = None
    for one in targets:
        with request(f"inspect the container {one.name}"):
            found = client.containers.get(one.container).attrs["NetworkSettings"]["Networks"]
        named = [name for name, end in found.items() if end.get("IPAddress")]
        shared = dict.fromkeys(name for name in named if shared is None or name in shared)
    if not shared:
        raise BadArguments(
            f"{', '.join(one.name for one in targets)} have no network in common, so clients "
            "cannot reach them all: connect them to one (`docker network connect`)"
        )
    return sorted(shared, key=lambda name: name == _BRIDGE)[0]


def describe(targets: Mapping[str, Target]) -> str:
    """Describe the container of each server, for run.json."""
    return ", ".join(f"{node}: {one.name}, {one.image}" for node, one in targets.items())
