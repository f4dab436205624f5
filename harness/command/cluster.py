"""`fencepost cluster`: the cluster of containers, apart from any test."""

from __future__ import annotations

from typing import Annotated

import typer

from fencepost.harness.cluster import docker_engine, image
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.nodes import every, role
from fencepost.harness.cluster.projects import setting_up
from fencepost.harness.cluster.provision import Way, brought_up, each
from fencepost.harness.cluster.reservation import Reservation
from fencepost.harness.command import screen
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.servers.kinds import KINDS, roles
from fencepost.harness.servers.server import Server
from fencepost.harness.servers.wait import START_S


def up(
    nodes: Annotated[
        list[str] | None, typer.Argument(help="Nodes or kinds (redis, client); all by default.")
    ] = None,
) -> None:
    """Bring nodes up, and leave them up until `cluster down`."""
    wanted = _expand(nodes or [])
    with brought_up(wanted, screen.say, leave_up=True, way=Way(mounts=False)) as cluster:
        servers = _servers(cluster, wanted)
        # All at one time: while the members of a cluster come in, one may go out once more.
        while True:
            for server in servers:
                server.wait_ready(screen.say, START_S)
            if all(server.ready() for server in servers):
                break
    screen.write(f"{len(wanted)} nodes are up and healthy.")


def down() -> None:
    """Remove every node and network, but for those of a command that is running."""

    def work(cluster: ComposeCluster, reservation: Reservation) -> None:
        # Nobody wants it kept, whatever of it cannot be removed now.
        reservation.set_keep(False)
        cluster.down()

    try:
        busy = each(docker_engine.find(), work)
    except docker_engine.NoEngine as none:
        screen.write(str(none))
        return
    if busy:
        raise Crashed("\n".join(str(one) for one in busy))
    screen.write("The cluster is down.")


def status() -> int:
    """Which nodes are up, and whether they serve; 0 if all that are up do."""
    codes: list[int] = []
    try:
        busy = each(docker_engine.find(), lambda cluster, _: codes.append(_status(cluster)))
    except docker_engine.NoEngine as none:
        screen.write(str(none))
        return 0
    for one in busy:
        screen.write(str(one))
    if not codes and not busy:
        screen.write("No node is up.")
    return max(codes, default=0)


def _status(cluster: ComposeCluster) -> int:
    nodes = cluster.look()
    bad = 0
    for node in sorted(nodes):
        kind = KINDS.get(role(node))
        healthy = kind is None or Server(cluster.remote(node), kind, {}).ready()
        bad += not healthy
        state = "healthy" if healthy else "NOT HEALTHY"
        screen.write(f"{node:12} {cluster.address(node):15} {state}")
    if not nodes:
        screen.write("Of a kept cluster no node is up.")
    return 1 if bad else 0


def build() -> None:
    """Provide the engine and the nodes' image, and start nothing."""
    with setting_up(screen.say):
        docker_engine.ensure(screen.say)
        name = image.ensure(screen.say, whole=True)
        screen.write(
            f"The engine answers and the nodes' image {name} is there, with the libraries "
            f"{', '.join(sorted(image.held(name)))}."
        )


def _expand(given: list[str]) -> list[str]:
    nodes, kinds = every(), (*roles(), "client", "storage")
    for name in given:
        if name not in nodes and name not in kinds:
            raise BadArguments(
                f"there is no node or kind {name!r}; choose from: {', '.join((*kinds, *nodes))}"
            )
    if not given:
        return nodes
    return [n for n in nodes if n in given or (n.rpartition("-")[0] or n) in given]


def _servers(cluster: Cluster, nodes: list[str]) -> list[Server]:
    return [
        Server(cluster.remote(node), KINDS[role(node)], {}) for node in nodes if role(node) in KINDS
    ]


COMMANDS = {"up": up, "down": down, "status": status, "build": build}
