"""`fencepost heal`: undoes and removes the remains of a killed run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fencepost.harness.cluster import docker_engine, hostsfile
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.healing import heal as heal_nodes
from fencepost.harness.cluster.healing import problems, unusable
from fencepost.harness.cluster.provision import each, reserved_hosts
from fencepost.harness.cluster.reservation import Reservation
from fencepost.harness.command import screen
from fencepost.harness.command.options import HostsFile
from fencepost.harness.errors import BadArguments, Crashed


def heal(
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="List what needs healing without changing anything; exit with 1 if anything does.",
        ),
    ] = False,
    hosts: HostsFile = None,
) -> int:
    bad = unusable()
    for words in bad:
        print(f"fencepost: warning: {words}", file=sys.stderr)
    code, stays = _containers(check) if hosts is None else (_hosts(hosts, check), True)
    if bad and stays:
        # If all nodes are removed, nothing of these packages can remain.
        raise Crashed(
            "everything is healed except what the packages named above may have left: repair or "
            "uninstall them, and heal again"
        )
    return code


def _containers(check: bool) -> tuple[int, bool]:
    """Heal or check containers; return the exit code, and whether nodes keep running."""
    try:
        found = docker_engine.find()
    except docker_engine.NoEngine as none:
        screen.write(f"{none} Nothing is left.")
        return 0, False
    codes: list[int] = []
    stay: list[bool] = []

    def work(cluster: ComposeCluster, reservation: Reservation) -> None:
        nodes, keep = cluster.look(), reservation.keep
        stay.append(keep and bool(nodes))
        remains = [] if nodes and keep else cluster.remains
        if check:
            codes.append(_check(cluster, nodes, remains, keep))
        else:
            _heal(cluster, nodes, remains, keep)

    for busy in each(found, work):
        screen.write(f"Skipped: {busy}")
    if not codes and not stay:
        screen.write("Nothing is left, and nothing needs healing.")
    return max(codes, default=0), any(stay)


def _heal(cluster: ComposeCluster, nodes: list[str], remains: list[str], keep: bool) -> None:
    if nodes and keep:
        healed = [*cluster.part(), *heal_nodes(cluster, nodes)]
        screen.write("\n".join(healed) or "The cluster is running, and nothing needs healing.")
        return
    cluster.down()
    for words in cluster.undone:
        screen.write(words)
    if nodes:
        screen.write(f"Removed {len(nodes) + len(remains)} nodes that a run had left.")
        return
    for what in remains:
        screen.write(f"Removed {what} that a run had left.")
    screen.write("No node is running, and nothing is left.")


def _hosts(path: Path, check: bool) -> int:
    hosts = hostsfile.read(path)
    if check:
        raise BadArguments("--check works only for containers: omit it with --hosts")
    with reserved_hosts(hosts, screen.say) as cluster:
        nodes = cluster.look()
        cluster.down()
    screen.write(f"Cleaned up {len(nodes)} hosts: nothing of a run is left on them.")
    return 0


def _check(cluster: Cluster, nodes: list[str], remains: list[str], kept: bool) -> int:
    found = (
        problems(cluster, nodes) if kept else [f"{node}: a run left it running" for node in nodes]
    )
    found += [f"{what}: a run left it" for what in remains]
    screen.write("\n".join(found) or "Nothing is left, and nothing needs healing.")
    return 1 if found else 0
