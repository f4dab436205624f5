"""Asks a run's nodes, before its faults are drawn, which of them they cannot have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.families import lacking
from fencepost.nemesis.targets import listed


def ask(spec: Spec, cluster: Cluster) -> dict[str, list[str]]:
    """Return the nodes that cannot have a variant of the test's faults, by FAMILY/VARIANT.

    Raises:
        RemoteError: a node did not answer.
    """
    nodes = dict.fromkeys((*spec.servers, *spec.clients))
    return lacking(spec.nemesis, {node: cluster.remote(node) for node in nodes})


def words(lacks: Mapping[str, Sequence[str]]) -> str:
    """Return in a few words which faults the nodes cannot have."""
    return f"not possible here: {listed(list(lacks))}"
