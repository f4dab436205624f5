"""A cluster for the length of a command: engine, image, nodes up, and everything down again.

The nodes are removed however the command ends. A command that is killed cannot remove them: the
next one finds them by their project's name, and removes them first. What belongs to a command that
lives is left alone: it has the reservation of its project.
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
    projects,
)
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.docker_engine import Say
from fencepost.harness.cluster.external_cluster import BesideCluster, Check
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


@dataclass(frozen=True)
class Way:
    """How nodes are reached, docker or ssh. `hosts` are machines in the place of containers.

    `mounts`: whether servers' containers get the rights that faults need which mount something.
    `foreign`: servers that are there already and not ours; `check` is called once they are known.
    `images`: those that clients' programs run in, and whether each has to have a Python.
    """

    remote: str = "docker"
    hosts: Hosts | None = None
    mounts: bool = True
    foreign: Foreign | None = None
    check: Check = lambda servers: None
    images: tuple[tuple[str, bool], ...] = ()


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
        Crashed: there is no engine, no image or no node, or no cluster that nobody uses.
        BadArguments: a library that is needed is not in the image, or there is no image for a
            client's program; nothing was started.
    """
    wanted, way = list(nodes), way or Way()
    if way.hosts is not None:
        with _hosted(way.hosts, wanted, say, leave_up, list(libraries)) as hosted:
            yield hosted
        return
    with projects.setting_up(say):
        found = docker_engine.ensure(say)
        compose = docker_engine.compose(say) if way.foreign and way.foreign.compose else ()
        name = image.ensure(say)
    image.must_hold(name, libraries)
    for one, python in way.images:
        clientimage.must_serve(one, python)
    with reserved(found, way) as (cluster, reservation):
        _remove_others(found, say)
        if not reservation.keep and (cluster.look() or cluster.remains):
            _say_removing(say)
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
                    if isinstance(whole, BesideCluster):
                        whole.part()
                finally:
                    if leave_up:
                        reservation.set_keep(True)
                    elif not reservation.keep:
                        _down(cluster)


@contextmanager
def _whole(
    cluster: ComposeCluster, way: Way, compose: tuple[str, ...], say: Say
) -> Iterator[ComposeCluster | BesideCluster]:
    """The cluster of a test: our nodes, and the servers beside them if these are not ours."""
    if way.foreign is None:
        yield cluster
        return
    with contextlib.closing(docker_calls.client()) as client:
        yield BesideCluster(cluster, client, way.foreign, say, way.check, compose)


def _say_removing(say: Say) -> None:
    say("Removing what an earlier run left behind")


def _remove_others(found: docker_engine.Engine, say: Say) -> None:
    """Remove what killed commands left of clusters that nobody uses and nobody wants kept."""
    for name in there():
        try:
            with reserved(found, name=name) as (cluster, reservation):
                if not reservation.keep:
                    _say_removing(say)
                    _down(cluster)
        except InUse:
            continue


def there() -> list[str]:
    """The names of all clusters that are kept, or of which Docker keeps anything.

    Raises:
        Refused: no engine answers.
    """
    with (
        contextlib.closing(docker_calls.client()) as client,
        docker_calls.asked("list what it keeps"),
    ):
        found = labels.projects(client) | owners(client) | set(projects.kept())
    return [name for name in projects.NAMES if name in found]


def _down(cluster: ComposeCluster) -> None:
    """Remove the nodes. A network that stays is only a warning: the run's own result counts."""
    try:
        cluster.down()
    except NetworkLeft as left:
        print(f"fencepost: warning: {left}", file=sys.stderr)


@contextmanager
def reserved(
    found: docker_engine.Engine, way: Way | None = None, name: str = ""
) -> Iterator[tuple[ComposeCluster, Reservation]]:
    """A cluster of an engine as it is, for this command alone: the one of this name, or any that
    nobody uses. Nothing is started or stopped.

    Raises:
        InUse: another command uses the one of this name.
    """
    if name:
        reservation = Reservation(name)
        reservation.take()
    else:
        name, reservation = projects.take()
    way = way or Way()
    doors = None
    if way.remote == "ssh":
        # Imported here: to load what speaks SSH takes longer than all else of Docker's SDK.
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
    """Work on every cluster that is there, even after one has failed; return those in use.

    Raises:
        Crashed: with what all that failed said.
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
    from fencepost.harness.cluster.hosts import HostsCluster

    reservation = Reservation(HOSTS)
    reservation.take()
    cluster = HostsCluster(hosts, say)
    try:
        yield cluster
    finally:
        cluster.close()
        reservation.release()
