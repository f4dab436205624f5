"""A cluster for the length of a command: engine, image, nodes up, and everything down again.

The nodes are removed however the command ends. A command that is killed cannot remove them: the
next one finds them by the project's name, and removes them first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fencepost.harness.cluster import engine, image
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.doors import Doors
from fencepost.harness.cluster.engine import Say
from fencepost.harness.cluster.healing import heal
from fencepost.harness.cluster.hosts import HostsCluster
from fencepost.harness.cluster.hostsfile import Hosts
from fencepost.harness.cluster.network import NetworkLeft
from fencepost.harness.cluster.nodes import CLIENT, role
from fencepost.harness.cluster.reservation import HOSTS, Reservation
from fencepost.harness.errors import BadArguments
from fencepost.harness.interrupts import interruptible, undisturbed


@dataclass(frozen=True)
class Way:
    """How nodes are reached, docker or ssh. `hosts` are machines in the place of containers.

    `mounts`: whether servers' containers get the rights that faults need which mount something.
    """

    remote: str = "docker"
    hosts: Hosts | None = None
    mounts: bool = True


@contextmanager
def brought_up(
    nodes: Iterable[str],
    say: Say,
    leave_up: bool = False,
    libraries: Iterable[str] = (),
    way: Way | None = None,
) -> Iterator[Cluster]:
    """Bring these nodes up, healed, and remove them afterwards.

    Nodes of `cluster up` stay up. From machines that are not ours, only what was put there is
    removed.

    Raises:
        Crashed: there is no engine, no image or no node, or another command uses the cluster.
        BadArguments: a library that is needed is not in the image; nothing was started.
    """
    wanted, way = list(nodes), way or Way()
    if way.hosts is not None:
        with _hosted(way.hosts, wanted, say, leave_up, list(libraries)) as hosted:
            yield hosted
        return
    with reserved(engine.ensure(say), way) as (cluster, reservation):
        name = image.ensure(say)
        image.must_hold(name, libraries)
        if not reservation.keep and cluster.look():
            say("Removing what an earlier run left behind")
            _down(cluster)
        elif cluster.nodes or cluster.look():
            for words in heal(cluster, cluster.nodes):
                say(f"Healed: {words}")
        say(f"Bringing up {len(wanted)} nodes")
        with undisturbed():
            try:
                with interruptible():
                    cluster.up(wanted, name)
                    yield cluster
            finally:
                if leave_up:
                    reservation.set_keep(True)
                elif not reservation.keep:
                    _down(cluster)


def _down(cluster: ComposeCluster) -> None:
    """Remove the nodes. A network that stays is only a warning: the run's own result counts."""
    try:
        cluster.down()
    except NetworkLeft as left:
        print(f"fencepost: warning: {left}", file=sys.stderr)


@contextmanager
def reserved(
    found: engine.Engine, way: Way | None = None
) -> Iterator[tuple[ComposeCluster, Reservation]]:
    """The cluster of an engine as it is, for this command alone. Nothing is started or stopped."""
    reservation = Reservation()
    reservation.take()
    way = way or Way()
    doors = Doors() if way.remote == "ssh" else None
    try:
        yield ComposeCluster(found, doors, way.mounts), reservation
    finally:
        reservation.release()
        if doors is not None:
            doors.close()


@contextmanager
def _hosted(
    hosts: Hosts, nodes: list[str], say: Say, leave_up: bool, libraries: list[str]
) -> Iterator[HostsCluster]:
    hosts.must_name(nodes)
    with reserved_hosts(hosts, say) as cluster:
        clients = [node for node in nodes if role(node) == CLIENT]
        if lacking := cluster.lacking(libraries, clients):
            raise BadArguments(
                f"{', '.join(lacking)} is not in /opt/fencepost/libraries on every client's host"
            )
        say(f"Setting up {len(nodes)} hosts")
        with undisturbed():
            try:
                with interruptible():
                    cluster.up(nodes)
                    yield cluster
            finally:
                if not leave_up:
                    cluster.down()


@contextmanager
def reserved_hosts(hosts: Hosts, say: Say) -> Iterator[HostsCluster]:
    """The hosts of a file, for this command alone. Nothing is changed on them."""
    reservation = Reservation(HOSTS)
    reservation.take()
    cluster = HostsCluster(hosts, say)
    try:
        yield cluster
    finally:
        cluster.close()
        reservation.release()
