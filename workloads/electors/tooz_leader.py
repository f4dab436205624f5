"""tooz' leader election on its Redis driver, as its documentation uses it.

The application calls `heartbeat` and `run_watchers` in a loop, and `watch_elected_as_leader` names
the function that is called once it leads. Nothing is called when it leads no more, and this driver
has neither `get_leader` nor `stand_down_group_leader`. A leader leads until its requests fail, or
it leaves. The library reports no deadline and no token. Its timeout is the lease, and also the
timeout of its sockets, unless `request_timeout_ms` names another one.
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

coordination: Any = Deferred("tooz.coordination")
redis: Any = Deferred("tooz.drivers.redis")

_POLLS = 4
"""Turns of the application's loop in each lease."""


class ToozLeader:
    """An elector of the plain contract."""

    def __init__(self, servers: Sequence[tuple[str, int]], request_timeout_ms: int) -> None:
        host, port = servers[0]
        self._url = f"redis://{host}:{port}"
        self._request_timeout_ms = request_timeout_ms
        self._resigned = threading.Event()

    def run(
        self,
        name: str,
        identity: str,
        ttl: float,
        started: Callable[[], object],
        stopped: Callable[[], None],
    ) -> None:
        group = name.encode()
        url = f"{self._url}?timeout={ttl:g}"
        if self._request_timeout_ms:
            url += f"&socket_timeout={self._request_timeout_ms / 1000:g}"
        led: list[object] = []

        def elected(event: object) -> None:
            # It is called again if the lock was lost and acquired again. It has led all the while.
            if not led:
                led.append(event)
                started()

        coordinator = coordination.get_coordinator(url, identity.encode())
        coordinator.start()
        try:
            coordinator.join_group_create(group)
            coordinator.watch_elected_as_leader(group, elected)
            while not self._resigned.is_set():
                coordinator.heartbeat()
                coordinator.run_watchers()
                self._resigned.wait(ttl / _POLLS)
            if led:
                stopped()
        finally:
            coordinator.stop()

    def resign(self) -> None:
        self._resigned.set()


def _make(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> ElectorLock:
    load(coordination, redis)
    return ElectorLock("tooz-leader", ToozLeader, env, nodes, options)


ELECTOR = LockType(
    name="tooz-leader",
    what="elector of tooz (PyPI): its leader election on one Redis server",
    make=_make,
    servers=1,
    options={
        "request_timeout_ms": Option(
            0, least=0, what="the timeout of its sockets; 0: the library's own, which is the lease"
        ),
    },
    library="tooz",
    least_ttl_ms=1000,
    whole_seconds=True,
    extends=False,
    renews=True,
    elector=True,
)
