"""Asks a run's nodes, before its faults are drawn, which of them they cannot have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.families import lacking
from fencepost.nemesis.schedule import Scheduled
from fencepost.nemesis.targets import listed


def ask(spec: Spec, cluster: Cluster, schedule: Sequence[Scheduled] = ()) -> dict[str, list[str]]:
    """Return the nodes that cannot have a variant of the test's faults, by FAMILY/VARIANT.

    `schedule`: faults that are given, and not drawn from the test's.

    Raises:
        RemoteError: a node did not answer.
    """
    asked = (*spec.nemesis, *(fault.family for fault in schedule))
    return lacking(asked, (*spec.servers, *spec.clients), cluster.remote)


def words(lacks: Mapping[str, Sequence[str]]) -> str:
    """Return in a few words which faults the nodes cannot have."""
    return f"not possible here: {listed(list(lacks))}"
