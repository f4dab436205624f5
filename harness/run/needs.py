"""The nodes that tests need, and a cluster that has them while the tests run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import choose
from fencepost.harness.run.spec import Spec
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.targets import STORAGE

REMOTES = ("docker", "ssh")


def nodes(specs: Sequence[Spec]) -> list[str]:
    """Every node that one of these tests needs, each once."""
    needed = [node for spec in specs for node in (*spec.servers, STORAGE, *spec.clients)]
    return list(dict.fromkeys(needed))


def mounts(specs: Sequence[Spec]) -> bool:
    """Whether a fault of one of these tests mounts something in a server's node."""
    asked = {family for spec in specs for family in spec.families}
    return any(FAMILIES[family].mounts for family in asked)


def cluster_for(
    specs: Sequence[Spec],
    say: Callable[[str], None],
    leave_up: bool = False,
    remote: str = "docker",
    hosts: Path | None = None,
) -> AbstractContextManager[Cluster]:
    """The cluster that these tests need: containers, or the hosts of a file.

    Raises, before anything is started:
        BadArguments: no such remote, or a file that cannot be read or lacks a node.
    """
    # Imported here: to describe or judge a test needs no Docker and no SSH.
    from fencepost.harness.cluster import hostsfile
    from fencepost.harness.cluster.brought_up import Way, brought_up

    choose("remote", remote, REMOTES)
    needed = nodes(specs)
    way = Way(remote, mounts=mounts(specs))
    if hosts is not None:
        found = hostsfile.read(hosts)
        found.must_name(needed)
        way = Way("ssh", found)
    libraries = {spec.lock_type.library for spec in specs} - {""}
    return brought_up(needed, say, leave_up, libraries, way)
