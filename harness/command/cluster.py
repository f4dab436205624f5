"""`fencepost cluster`: manages a cluster of containers independently of tests."""

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
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.servers.server import Server
from fencepost.harness.servers.wait import START_S


def up(
    nodes: Annotated[
        list[str] | None, typer.Argument(help="Nodes or kinds (redis, client); all by default.")
    ] = None,
) -> None:
    """Start nodes and keep them running until `cluster down`."""
    wanted = _expand(nodes or [])
    with brought_up(wanted, screen.say, leave_up=True, way=Way(mounts=False)) as cluster:
        servers = _servers(cluster, wanted)
        # All must be ready at the same time: a member may leave again while others join.
        while True:
            for server in servers:
                server.wait_ready(screen.say, START_S)
            if all(server.ready() for server in servers):
                break
    screen.write(f"{len(wanted)} nodes are up and healthy.")


def down() -> None:
    """Remove all nodes and networks except those of running commands."""

    def work(cluster: ComposeCluster, reservation: Reservation) -> None:
        # First, so that the cluster is not kept even if its removal fails.
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
    """List the running nodes; exit with 1 if one of them is not healthy."""
    codes: list[int] = []
    try:
        busy = each(docker_engine.find(), lambda cluster, _: codes.append(_status(cluster)))
    except docker_engine.NoEngine as none:
        screen.write(str(none))
        return 0
    for one in busy:
        screen.write(str(one))
    if not codes and not busy:
        screen.write("No node is running.")
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
        screen.write("No node of a kept cluster is running.")
    return 1 if bad else 0


def build() -> None:
    """Install the engine and build the nodes' image, without starting nodes."""
    name = image.built(whole=True) if docker_engine.answering() else None
    if name is None:
        with setting_up(screen.say):
            docker_engine.ensure(screen.say)
            name = image.ensure(screen.say, whole=True)
    screen.write(
        f"The engine answers, and the nodes' image {name} exists. Libraries in it: "
        f"{', '.join(sorted(image.held(name)))}."
    )


def _expand(given: list[str]) -> list[str]:
    nodes = every()
    kinds = tuple(dict.fromkeys(node.rpartition("-")[0] or node for node in nodes))
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
