"""The clusters that this worker of xdist may use, with their nodes and networks."""

from __future__ import annotations

import contextlib

from fencepost.harness.cluster import docker_calls, labels, projects

SHARED: set[str] = set()
"""The cluster that stays up between tests (conftest.py)."""
_CLUSTERS = projects.names()


def share(worker: str, workers: int) -> str:
    """Return a worker's range of the clusters that all of them may use, for FENCEPOST_CLUSTERS."""
    each, number = len(_CLUSTERS) // workers, int(worker.removeprefix("gw"))
    # The shared one, that of a module, and those of two commands.
    assert each >= 4, "run these tests with fewer workers (-n): each needs four clusters"
    first, last = _CLUSTERS[number * each], _CLUSTERS[(number + 1) * each - 1]
    return "-".join(name.partition("-")[2] or "1" for name in (first, last))


def clusters() -> set[str]:
    """Return the names of the clusters that this worker's commands take."""
    return {*projects.names()} - SHARED


def used() -> dict[str, str]:
    """Return the subnet of each of these clusters that has a network."""
    found = {}
    with contextlib.closing(docker_calls.client()) as client:
        for name in clusters():
            for network in labels.networks(client, name):
                network.reload()
                found[name] = network.attrs["IPAM"]["Config"][0]["Subnet"]
    return found


def nodes() -> list[str]:
    """Return the containers of these clusters, also stopped ones."""
    with contextlib.closing(docker_calls.client()) as client:
        return [str(one.name) for name in clusters() for one in labels.containers(client, name)]
