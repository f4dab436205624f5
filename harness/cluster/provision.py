"""Provides a cluster for the duration of a command: engine, image, nodes, and their removal.

The nodes are removed however the command ends. After a killed command, the next command finds them
by their project's name and removes them first. It does not touch the nodes of a running command,
which holds the reservation of its project.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencepost.harness.cluster import (
    clientimage,
    docker_calls,
    docker_engine,
    image,
    labels,
    layers,
    projects,
)
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.docker_engine import Say
from fencepost.harness.cluster.external_cluster import Check, ExternalCluster
from fencepost.harness.cluster.healing import heal
from fencepost.harness.cluster.network import NetworkLeft
from fencepost.harness.cluster.nodes import CLIENT, role
from fencepost.harness.cluster.project import owners
from fencepost.harness.cluster.reservation import HOSTS, InUse, Reservation
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.interrupts import interruptible, undisturbed
from fencepost.harness.servers.external_names import Foreign

if TYPE_CHECKING:
    from fencepost.harness.cluster.hosts import HostsCluster
    from fencepost.harness.cluster.hostsfile import Hosts


_REMOVING = "Removing what an earlier run left"


@dataclass(frozen=True)
class Way:
    """How nodes are reached, docker or ssh. `hosts`: machines to use instead of containers.

    `mounts`: give the servers' containers the rights for faults that mount file systems.
    `foreign`: external servers; `check` is called when they have been inspected.
    `images`: the images of client programs, and whether each needs Python. `kinds`: those of
    servers that replace the usual ones of their nodes.
    """

    remote: str = "docker"
    hosts: Hosts | None = None
    mounts: bool = True
    foreign: Foreign | None = None
    check: Check = lambda servers: None
    kinds: tuple[str, ...] = ()
    images: tuple[tuple[str, bool], ...] = ()


@contextmanager
def brought_up(
    nodes: Iterable[str],
    say: Say,
    leave_up: bool = False,
    libraries: Iterable[str] = (),
    way: Way | None = None,
) -> Iterator[Cluster]:
    """Start these nodes, or heal running ones, and remove them afterwards.

    Nodes of `cluster up` are kept running. From hosts of a hosts file, only fencepost's files are
    removed.

    Raises:
        Crashed: the engine, the image or a node cannot be provided, or all clusters are in use.
        BadArguments: the image lacks a library, or the image of a client program is missing;
            nothing was started.
    """
    wanted, way = list(nodes), way or Way()
    if way.hosts is not None:
        with _hosted(way.hosts, wanted, say, leave_up, list(libraries)) as hosted:
            yield hosted
        return
    with_compose = way.foreign is not None and way.foreign.compose is not None
    found, compose, name = _ready({*map(role, wanted), *way.kinds}, with_compose, say)
    image.must_hold(name, libraries)
    for one, python in way.images:
        clientimage.must_serve(one, python)
    with reserved(found, way) as (cluster, reservation):
        _remove_others(found, say)
        if not reservation.keep and (cluster.look() or cluster.remains):
            say(_REMOVING)
            _down(cluster)
        elif cluster.nodes or cluster.look():
            for words in (*cluster.part(), *heal(cluster, cluster.nodes)):
                say(f"Healed: {words}")
        if way.foreign is None:
            say(f"Bringing up {len(wanted)} nodes")
        with _whole(cluster, way, compose, say) as whole, undisturbed():
            try:
                with interruptible():
                    whole.up(wanted, name)
                    yield whole
            finally:
                try:
                    if isinstance(whole, ExternalCluster):
                        whole.part()
                finally:
                    if leave_up:
                        reservation.set_keep(True)
                    elif not reservation.keep:
                        _down(cluster)


def _ready(
    kinds: set[str], with_compose: bool, say: Say
) -> tuple[docker_engine.Engine, tuple[str, ...], str]:
    """Return the engine, the command that calls Compose, if needed, and the image of such nodes.

    Missing parts are set up by one command at a time. A command that misses nothing does not wait:
    the build of a layer may take most of an hour.
    """
    if (found := docker_engine.answering()) is not None and (base := image.built()) is not None:
        name = layers.built(base, kinds)
        compose = docker_engine.compose_there() if with_compose else ()
        if name is not None and (compose or not with_compose):
            return found, compose, name
    with projects.setting_up(say):
        found = docker_engine.ensure(say)
        compose = docker_engine.compose(say) if with_compose else ()
        return found, compose, layers.ensure(image.ensure(say), kinds, say)


@contextmanager
def _whole(
    cluster: ComposeCluster, way: Way, compose: tuple[str, ...], say: Say
) -> Iterator[ComposeCluster | ExternalCluster]:
    """Yield the cluster of a test, together with external servers if it uses such."""
    if way.foreign is None:
        yield cluster
        return
    with contextlib.closing(docker_calls.client()) as client:
        yield ExternalCluster(cluster, client, way.foreign, say, way.check, compose)


def _remove_others(found: docker_engine.Engine, say: Say) -> None:
    """Remove what killed commands left of clusters that are neither in use nor kept."""
    for name in there():
        try:
            with reserved(found, name=name) as (cluster, reservation):
                if not reservation.keep:
                    say(_REMOVING)
                    _down(cluster)
        except InUse:
            continue


def there() -> list[str]:
    """Return the names of all clusters that are kept, or of which Docker has anything.

    Raises:
        Refused: no engine answers.
    """
    with (
        contextlib.closing(docker_calls.client()) as client,
        docker_calls.request("list its containers and networks"),
    ):
        found = labels.projects(client) | owners(client) | set(projects.kept_clusters())
    return [name for name in projects.names() if name in found]


def _down(cluster: ComposeCluster) -> None:
    """Remove the nodes. A network that cannot be removed only causes a warning."""
    try:
        cluster.down()
    except NetworkLeft as left:
        print(f"fencepost: warning: {left}", file=sys.stderr)


@contextmanager
def reserved(
    found: docker_engine.Engine, way: Way | None = None, name: str = ""
) -> Iterator[tuple[ComposeCluster, Reservation]]:
    """Reserve a cluster in its present state: the one of this name, or any unused one.

    Nothing is started or stopped.

    Raises:
        InUse: another command uses the cluster of this name.
    """
    if name:
        reservation = Reservation(name)
        reservation.take()
    else:
        name, reservation = projects.take()
    way = way or Way()
    doors = None
    if way.remote == "ssh":
        # Imported here, because loading the SSH library is slow.
        from fencepost.harness.cluster.ssh_keys import Doors

        doors = Doors()
    try:
        yield ComposeCluster(found, name, doors, way.mounts), reservation
    finally:
        reservation.release()
        if doors is not None:
            doors.close()


def each(
    found: docker_engine.Engine, work: Callable[[ComposeCluster, Reservation], None]
) -> list[InUse]:
    """Work on every existing cluster, even after one has failed; return those in use.

    Raises:
        Crashed: the work failed on some clusters; the text has all errors.
    """
    busy: list[InUse] = []
    failed: list[Crashed] = []
    for name in there():
        try:
            with reserved(found, name=name) as (cluster, reservation):
                work(cluster, reservation)
        except InUse as other:
            busy.append(other)
        except Crashed as error:
            failed.append(error)
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise Crashed("\n".join(map(str, failed)))
    return busy


@contextmanager
def _hosted(
    hosts: Hosts, nodes: list[str], say: Say, leave_up: bool, libraries: list[str]
) -> Iterator[HostsCluster]:
    hosts.must_name(nodes)
    with reserved_hosts(hosts, say) as cluster:
        clients = [node for node in nodes if role(node) == CLIENT]
        if lacking := cluster.lacking(libraries, clients):
            raise BadArguments(
                f"a client's host lacks {', '.join(lacking)} in /opt/fencepost/libraries"
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
    """Reserve the hosts of a file. Nothing is changed on them."""
    from fencepost.harness.cluster.hosts import HostsCluster

    reservation = Reservation(HOSTS)
    reservation.take()
    cluster = HostsCluster(hosts, say)
    try:
        yield cluster
    finally:
        cluster.close()
        reservation.release()
