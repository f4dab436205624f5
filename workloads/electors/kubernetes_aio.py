"""The leader election of the official Kubernetes client for asyncio: kubernetes.aio.leaderelection.

The library runs the leader's work as a task, which it cancels when it has lost the lease; then it
calls onstopped_leading. It has no way to resign, reports no deadline and no token.

Release 37.0.2 cannot create the object that it elects with: its own request has `pretty=True`,
where the client takes a string alone (register: kubernetes-aio-cannot-create). So each candidate
creates the object, without a holder, as a deployment would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from fencepost.workloads.contract.lock import Env
from fencepost.workloads.electors import kubernetes_client
from fencepost.workloads.electors.plain import ElectorLock
from fencepost.workloads.transport.deferred import Deferred, load

client: Any = Deferred("kubernetes.aio.client")
electionconfig: Any = Deferred("kubernetes.aio.leaderelection.electionconfig")
leaderelection: Any = Deferred("kubernetes.aio.leaderelection.leaderelection")
configmaplock: Any = Deferred("kubernetes.aio.leaderelection.resourcelock.configmaplock")
leaselock: Any = Deferred("kubernetes.aio.leaderelection.resourcelock.leaselock")

_NAMESPACE = "default"


class KubernetesAio:
    """An elector of the plain contract."""

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        resource: str,
        renew_deadline_ms: int,
        retry_period_ms: int,
    ) -> None:
        host, port = servers[0]
        self._host = f"http://{host}:{port}"
        self._resource = resource
        self._renew_deadline_s = renew_deadline_ms / 1000
        self._retry_period_s = retry_period_ms / 1000

    async def run(
        self,
        name: str,
        identity: str,
        ttl: float,
        started: Callable[[], object],
        stopped: Callable[[], None],
    ) -> None:
        async def begins() -> None:
            started()

        async def ends() -> None:
            stopped()

        async with client.ApiClient(client.Configuration(host=self._host)) as api:
            await self._create(api, name)
            lock = leaselock.LeaseLock if self._resource == "lease" else configmaplock.ConfigMapLock
            config = electionconfig.Config(
                lock(name, _NAMESPACE, identity, api),
                lease_duration=round(ttl),
                renew_deadline=self._renew_deadline_s,
                retry_period=self._retry_period_s,
                onstarted_leading=begins,
                onstopped_leading=ends,
            )
            await leaderelection.LeaderElection(config).run()

    async def _create(self, api: Any, name: str) -> None:
        metadata = client.V1ObjectMeta(name=name)
        try:
            if self._resource == "lease":
                lease = client.V1Lease(metadata=metadata, spec=client.V1LeaseSpec())
                await client.CoordinationV1Api(api).create_namespaced_lease(_NAMESPACE, lease)
            else:
                empty = client.V1ConfigMap(metadata=metadata)
                await client.CoreV1Api(api).create_namespaced_config_map(_NAMESPACE, empty)
        except client.ApiException as error:
            if error.status != HTTPStatus.CONFLICT:
                raise


def _make(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> ElectorLock:
    load(client, electionconfig, leaderelection, configmaplock, leaselock)
    return ElectorLock("kubernetes-aio", KubernetesAio, env, nodes, options)


ELECTOR = replace(
    kubernetes_client.ELECTOR,
    name="kubernetes-aio",
    what="elector of kubernetes (PyPI): kubernetes.aio.leaderelection on one API server",
    make=_make,
    module="kubernetes.aio",
    loads=(
        "kubernetes.aio.client.api.core_v1_api",
        "kubernetes.aio.client.api.coordination_v1_api",
        "kubernetes.aio.leaderelection.leaderelection",
        "kubernetes.aio.leaderelection.electionconfig",
        "kubernetes.aio.leaderelection.resourcelock.configmaplock",
        "kubernetes.aio.leaderelection.resourcelock.leaselock",
    ),
)
