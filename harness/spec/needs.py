"""The nodes that tests need, and a cluster that has them during the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.servers.external import ForeignServer
from fencepost.harness.servers.kinds import KINDS, chosen
from fencepost.harness.spec.spec import Spec, layout_of
from fencepost.nemesis.families import FAMILIES, check, possible
from fencepost.nemesis.targets import STORAGE
from fencepost.workloads.electors.arithmetic import cannot_be_safe

REMOTES = ("docker", "ssh")


def nodes(specs: Sequence[Spec]) -> list[str]:
    """Return each node that fencepost must start for these tests, once."""
    needed = [
        node
        for spec in specs
        for node in (*(() if spec.foreign else spec.servers), STORAGE, *spec.clients)
    ]
    return list(dict.fromkeys(needed))


def mounts(specs: Sequence[Spec]) -> bool:
    """Return whether a fault of one of these tests mounts something in a server's node."""
    asked = {family for spec in specs for family in spec.families}
    return any(FAMILIES[family].mounts for family in asked)


def libraries(specs: Sequence[Spec]) -> set[str]:
    """Return the libraries under test that the nodes need."""
    return {spec.lock_type.library for spec in specs} - {""}


def must_suit(spec: Spec, servers: Mapping[str, ForeignServer], say: Callable[[str], None]) -> None:
    """Report which faults external servers support.

    Raises:
        BadArguments: they do not support one that the test asks for.
    """
    layout = layout_of(spec, servers)
    families: dict[str, list[str]] = {}
    for family, why in possible(layout).items():
        families.setdefault(why, []).append(family)
    say(f"Faults that these servers support: {', '.join(families.pop('', ['none']))}")
    if families:
        said = (f"{', '.join(names)} ({why})" for why, names in families.items())
        say(f"Not: {'; '.join(said)}")
    try:
        check(spec.nemesis, layout)
    except ValueError as error:
        raise BadArguments(str(error)) from error


def warn_of_numbers(spec: Spec, say: Callable[[str], None]) -> None:
    """Report if the numbers of an elector cannot be safe. The run may still show no overlap."""
    if spec.lock_type.elector and (why := cannot_be_safe(spec.ttl_ms, spec.options)):
        say(f"The numbers of this election cannot be safe: {why}")


def images(specs: Sequence[Spec]) -> set[tuple[str, bool]]:
    """Return the images of clients that have their own, and whether each needs a Python."""
    owns = [spec.own for spec in specs if spec.own and spec.own.image]
    return {(own.image, own.needs_python) for own in owns}


def _kinds(specs: Sequence[Spec]) -> tuple[str, ...]:
    """Return the kinds of servers that replace the usual ones of their nodes."""
    found = (
        chosen(spec.lock_type.kind, spec.server_version)[0]
        for spec in specs
        if spec.lock_type.kind in KINDS and spec.foreign is None
    )
    return tuple(sorted({kind.name for kind in found if kind.serves}))


def cluster_for(
    specs: Sequence[Spec],
    say: Callable[[str], None],
    leave_up: bool = False,
    remote: str = "docker",
    hosts: Path | None = None,
) -> AbstractContextManager[Cluster]:
    """Return the cluster that these tests need: containers, or the hosts of a file.

    Raises, before anything is started:
        BadArguments: there is no such remote, or a file cannot be read or lacks a node.
    """
    # Imported here: describing or judging a test needs no Docker, and most clusters need no SSH.
    from fencepost.harness.cluster.provision import Way, brought_up

    choose("remote", remote, REMOTES)
    needed = nodes(specs)
    apart = images(specs)
    if apart and (remote != "docker" or hosts is not None):
        raise BadArguments("--client-image needs containers: leave --remote and --hosts out")
    way = Way(remote, mounts=mounts(specs), images=tuple(sorted(apart)), kinds=_kinds(specs))
    if hosts is not None:
        from fencepost.harness.cluster import hostsfile

        found = hostsfile.read(hosts)
        found.must_name(needed)
        way = Way("ssh", found)
    if foreign := next((spec.foreign for spec in specs if spec.foreign), None):
        if hosts is not None or remote != "docker" or leave_up:
            raise BadArguments(
                "external servers in containers are reached through Docker, and no cluster stays "
                "up with them: leave --hosts, --remote and --leave-db-running out"
            )
        (spec,) = specs
        way = Way(images=way.images, foreign=foreign, check=partial(must_suit, spec, say=say))
    return brought_up(needed, say, leave_up, libraries(specs), way)
