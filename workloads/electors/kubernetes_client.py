"""The leader election of the official Kubernetes client for Python (kubernetes.leaderelection).

It is used as its example does: `run` in the main thread of a candidate. The library has no way to
resign, reports no deadline and no token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fencepost.workloads.contract.lock import Env
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.electors.plain import ElectorLock
from fencepost.workloads.transport.deferred import Deferred, load

client: Any = Deferred("kubernetes.client")
electionconfig: Any = Deferred("kubernetes.leaderelection.electionconfig")
leaderelection: Any = Deferred("kubernetes.leaderelection.leaderelection")
configmaplock: Any = Deferred("kubernetes.leaderelection.resourcelock.configmaplock")
leaselock: Any = Deferred("kubernetes.leaderelection.resourcelock.leaselock")

_NAMESPACE = "default"


class KubernetesClient:
    """An elector of the plain contract."""

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        resource: str,
        renew_deadline_ms: int,
        retry_period_ms: int,
    ) -> None:
        host, port = servers[0]
        self._configuration = client.Configuration(host=f"http://{host}:{port}")
        self._resource = resource
        self._renew_deadline_s = renew_deadline_ms / 1000
        self._retry_period_s = retry_period_ms / 1000

    def run(
        self,
        name: str,
        identity: str,
        ttl: float,
        started: Callable[[], object],
        stopped: Callable[[], None],
    ) -> None:
        config = electionconfig.Config(
            self._lock(name, identity),
            lease_duration=round(ttl),
            renew_deadline=self._renew_deadline_s,
            retry_period=self._retry_period_s,
            onstarted_leading=started,
            onstopped_leading=stopped,
        )
        leaderelection.LeaderElection(config).run()

    def _lock(self, name: str, identity: str) -> Any:
        """Return the library's lock. Its client of the API belongs to this candidate, because in a
        hunt several candidates share a process and its default client."""
        api = client.ApiClient(self._configuration)
        if self._resource == "lease":
            found: Any = leaselock.LeaseLock(name, _NAMESPACE, identity)
            found.api_instance = client.CoordinationV1Api(api)
        else:
            found = configmaplock.ConfigMapLock(name, _NAMESPACE, identity)
            found.api_instance = client.CoreV1Api(api)
        return found


def _make(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> ElectorLock:
    load(client, electionconfig, leaderelection, configmaplock, leaselock)
    return ElectorLock("kubernetes-client", KubernetesClient, env, nodes, options)


ELECTOR = LockType(
    name="kubernetes-client",
    what="elector of kubernetes (PyPI): kubernetes.leaderelection on one API server",
    make=_make,
    servers=1,
    kind="kubernetes",
    options={
        "resource": Option("lease", ("lease", "configmap"), what="the object of the election"),
        "renew_deadline_ms": Option(1500, least=1, what="how long a leader tries to renew"),
        "retry_period_ms": Option(1000, least=1, what="how long a candidate waits between tries"),
    },
    library="kubernetes",
    least_ttl_ms=2000,
    # Its least retry period is 1 s, and its loop needs twice that and the deadline (renew_loop).
    usual_ttl_ms=4000,
    whole_seconds=True,
    extends=False,
    renews=True,
    elector=True,
    loads=(
        "kubernetes.client.api.core_v1_api",
        "kubernetes.client.api.coordination_v1_api",
        "kubernetes.leaderelection.leaderelection",
        "kubernetes.leaderelection.electionconfig",
        "kubernetes.leaderelection.resourcelock.configmaplock",
        "kubernetes.leaderelection.resourcelock.leaselock",
    ),
)
