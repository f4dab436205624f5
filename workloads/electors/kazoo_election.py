"""kazoo's Election (kazoo.recipe.election.Election), as its documentation uses it.

`run(func)` calls `func` once it leads, and the leader leads until `func` returns. kazoo tells the
application of a lost connection by a listener only, and a leader has to stop in either state. So
`func` waits for that listener, or for `resign`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fencepost.workloads.contract.lock import Env
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.electors.plain import ElectorLock
from fencepost.workloads.transport.deferred import Deferred, load

client: Any = Deferred("kazoo.client")
states: Any = Deferred("kazoo.protocol.states")


class KazooElection:
    """An elector of the plain contract."""

    def __init__(
        self, servers: Sequence[tuple[str, int]], listens: str, node_timeout_ms: int
    ) -> None:
        self._hosts = ",".join(f"{host}:{port}" for host, port in servers)
        self._listens = listens == "yes"
        self._start_s = node_timeout_ms / 1000
        self._resigned = False
        self._over = threading.Event()
        self._election: Any = None

    def run(
        self,
        name: str,
        identity: str,
        ttl: float,
        started: Callable[[], object],
        stopped: Callable[[], None],
    ) -> None:
        session = client.KazooClient(self._hosts, timeout=ttl)
        if self._listens:
            session.add_listener(self._listen)
        session.start(self._start_s)

        def leads() -> None:
            # A connection that was lost before it led does not matter, unless it still is.
            self._over.clear()
            if self._resigned or (self._listens and not session.connected):
                return
            started()
            self._over.wait()
            stopped()

        try:
            self._election = session.Election(f"/fencepost/{name}", identity)
            self._election.run(leads)
        finally:
            session.stop()
            session.close()

    def resign(self) -> None:
        self._resigned = True
        self._over.set()
        if self._election is not None:
            self._election.cancel()

    def _listen(self, state: str) -> None:
        if state in (states.KazooState.SUSPENDED, states.KazooState.LOST):
            self._over.set()


def _make(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> ElectorLock:
    load(client, states)
    return ElectorLock("kazoo-election", KazooElection, env, nodes, options)


ELECTOR = LockType(
    name="kazoo-election",
    what="elector of kazoo (PyPI): kazoo.recipe.election.Election on ZooKeeper",
    make=_make,
    servers=3,
    kind="zookeeper",
    options={
        "listens": Option(
            "yes", ("yes", "no"), what="whether the leader listens for lost sessions"
        ),
        "node_timeout_ms": Option(1000, least=1, what="how long the first connection may take"),
    },
    library="kazoo",
    least_ttl_ms=1000,
    extends=False,
    ends_with="close",
    renews=True,
    elector=True,
)
