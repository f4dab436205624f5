"""Brings the nodes' containers up, and the network between them, by the engine's SDK.

They are a Compose project to whoever looks (`docker compose -p fencepost ps`): they have the labels
of one. Compose itself is not asked. It is a program in Python on many machines, takes seconds to
start, and lives on when the command that called it is killed: it would go on starting nodes that
`fencepost heal` has just removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from docker import DockerClient
from docker.models.containers import Container
from docker.models.networks import Network

from fencepost.harness.cluster import docker_calls, labels
from fencepost.harness.cluster.docker_calls import Refused, asked
from fencepost.harness.cluster.services import Service

_FINGERPRINT = "com.docker.compose.config-hash"
_SECOND = 1_000_000_000
# What Docker makes or removes at a time: more than it has processors for is no faster, and where
# several nodes join or leave a network at once, Docker 20.10 may miscount (network.py).
AT_ONCE = max(2, min(8, os.cpu_count() or 2))


def bring_up(
    client: DockerClient,
    project: str,
    wanted: Mapping[str, Service],
    started: Callable[[str, str], None] = lambda node, container: None,
) -> None:
    """Start these nodes. One that runs and is what is wanted stays as it is; another is replaced.

    `started` is called with each node that was started and the id of its container, while others
    still are; it must not take long. Whatever ends this, nothing is started once it has returned.

    Raises:
        Refused: Docker does not start one, with its message and what to do.
    """
    try:
        with asked("list what it keeps"):
            network = _network(client, project)
            images = {one.image for one in wanted.values()}
            ids = {image: str(client.images.get(image).id) for image in images}
            there: dict[str, list[Container]] = {}
            for container in labels.containers(client, project):
                there.setdefault(labels.service_of(container), []).append(container)

        def work(node: str) -> None:
            service = wanted[node]
            with asked(f"start the node {node}"):
                if not _kept(there.get(node, []), service, ids[service.image]):
                    made = _create(client, project, network, node, service)
                    made.start()
                    started(node, str(made.id))

        _side_by_side(work, wanted)
    except Refused as error:
        raise Refused(f"{error}{_hint(str(error))}") from error


def _network(client: DockerClient, project: str) -> Network:
    """The project's network, which is created if it is not there."""
    found = labels.networks(client, project)
    if found:
        return found[0]
    return client.networks.create(
        f"{project}_{labels.NETWORK}",
        driver="bridge",
        internal=True,
        check_duplicate=True,
        labels=labels.of_network(project),
    )


def _kept(there: Iterable[Container], service: Service, image: str) -> bool:
    """Whether a node is there and is what is wanted: then it runs. One that is not is removed."""
    kept = False
    for container in there:
        same = container.labels.get(_FINGERPRINT) == service.fingerprint
        if not kept and same and container.attrs["Image"] == image:
            if container.status != "running":
                container.start()
            kept = True
        else:
            docker_calls.remove(container)
    return kept


def _create(
    client: DockerClient, project: str, network: Network, node: str, service: Service
) -> Container:
    health: dict[str, Any] | None = None
    if service.health:
        health = {
            "test": ["CMD", *service.health],
            "interval": 30 * _SECOND,
            "timeout": 4 * _SECOND,
            "retries": 3,
        }
    name = str(network.name)
    return client.containers.create(
        service.image,
        list(service.command),
        entrypoint=list(service.entrypoint) or None,
        name=f"{project}-{node}-1",
        hostname=node,
        network=name,
        networking_config={name: client.api.create_endpoint_config(aliases=[node])},
        cap_add=list(service.capabilities),
        security_opt=list(service.security),
        device_cgroup_rules=list(service.devices),
        mem_limit=service.memory,
        pids_limit=service.processes,
        healthcheck=health,
        # No restart policy: what is down was taken down by a test, and must not come back.
        labels={**labels.labels(project, node), _FINGERPRINT: service.fingerprint},
    )


def _side_by_side(work: Callable[[str], None], nodes: Iterable[str]) -> None:
    """Work on every node; after an error, or an interrupt, on none that was not begun."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        tasks = [pool.submit(work, node) for node in nodes]
        wait(tasks, return_when=FIRST_EXCEPTION)
    finally:
        pool.shutdown(cancel_futures=True)
    for task in tasks:
        if not task.cancelled():
            task.result()


def _hint(said: str) -> str:
    if "non-overlapping" in said or "address pool" in said.lower():
        return "\nEvery subnet Docker may use is taken: `docker network prune` removes unused ones."
    if "active endpoints" in said or "already exists in network" in said:
        return (
            "\nDocker keeps an endpoint whose container is gone: `fencepost heal` removes it, or "
            "says what else to do."
        )
    if "no space left" in said.lower():
        return "\nThe disk is full: `docker system df` shows what Docker keeps."
    return ""
