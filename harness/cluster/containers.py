"""Starts the nodes' containers and their network with the Docker SDK.

Their labels make them a Compose project (`docker compose -p fencepost ps` shows them). Compose
itself is not used: on many machines it takes seconds to start, and it survives the command that
called it. So it might start nodes that `fencepost heal` has just removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from docker import DockerClient
from docker.models.containers import Container
from docker.models.networks import Network

from fencepost import processors
from fencepost.harness.cluster import docker_calls, labels
from fencepost.harness.cluster.docker_calls import Refused, request
from fencepost.harness.cluster.services import Service

_FINGERPRINT = "com.docker.compose.config-hash"
# Number of parallel requests. More than the number of processors is not faster, and Docker 20.10
# may miscount endpoints if several nodes join or leave a network at the same time (network.py).
AT_ONCE = max(2, min(8, processors.count()))


def bring_up(
    client: DockerClient,
    project: str,
    wanted: Mapping[str, Service],
    started: Callable[[str, str], None] = lambda node, container: None,
) -> None:
    """Start these nodes. A running node with the wanted configuration is kept; others are replaced.

    `started` is called with each started node and the id of its container, while others are still
    starting; it must return quickly. Even after an error, no node is started after this returns.

    Raises:
        Refused: Docker does not start a node; the text has its message and what to do.
    """
    try:
        with request("list its containers and networks"):
            network = _network(client, project)
            images = {one.image for one in wanted.values()}
            ids = {image: str(client.images.get(image).id) for image in images}
            there: dict[str, list[Container]] = {}
            for container in labels.containers(client, project):
                there.setdefault(labels.service_of(container), []).append(container)

        def work(node: str) -> None:
            service = wanted[node]
            with request(f"start the node {node}"):
                if not _kept(there.get(node, []), service, ids[service.image]):
                    made = _create(client, project, network, node, service)
                    made.start()
                    started(node, str(made.id))

        _side_by_side(work, wanted)
    except Refused as error:
        raise Refused(f"{error}{_hint(str(error))}") from error


def _network(client: DockerClient, project: str) -> Network:
    """Return the project's network; create it if it does not exist."""
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
    """Return whether the node runs already with the wanted configuration; if not, remove it."""
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
        # No restart policy: a container that a test has killed must stay down.
        labels={**labels.labels(project, node), _FINGERPRINT: service.fingerprint},
    )


def _side_by_side(work: Callable[[str], None], nodes: Iterable[str]) -> None:
    """Work on every node in parallel; after an error or an interrupt, start on no other node."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        tasks = [pool.submit(work, node) for node in nodes]
        wait(tasks, return_when=FIRST_EXCEPTION)
    finally:
        pool.shutdown(cancel_futures=True)
    for task in tasks:
        if not task.cancelled():
            task.result()


def _hint(message: str) -> str:
    if "non-overlapping" in message or "address pool" in message.lower():
        return "\nDocker has no free subnet: `docker network prune` removes unused networks."
    if "active endpoints" in message or "already exists in network" in message:
        return (
            "\nDocker has an endpoint whose container does not exist: run `fencepost heal` to "
            "remove it, or to see another remedy."
        )
    if "no space left" in message.lower():
        return "\nThe disk is full: `docker system df` shows what Docker uses."
    return ""
