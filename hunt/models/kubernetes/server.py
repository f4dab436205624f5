"""Simulates an API server. A command is a decoded HTTP request, the reply its status and body.

The store behind it (etcd) is always available, and keeps every answered write. A server that is
killed loses its connections, and nothing else.
"""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.http_session import Session
from fencepost.hunt.models.kubernetes.state import State
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.network import Request as Sent

PORT = 6443


class KubernetesServer(Server):
    """One API server."""

    __slots__ = ("_network", "_state")

    port = PORT

    def __init__(self, name: str, index: int, network: Network, state: State) -> None:
        super().__init__(name, index)
        self._network = network
        self._state = state
        self.kept = True

    def session(self) -> Session:
        return Session("Kubernetes")

    def handle(self, command: tuple[Any, ...]) -> Any:
        method, path, query, media, body = command
        now_ns = self.clock.ns(self._network.world.now)
        return self._state.answer(method, path, query, media, body, now_ns)

    def wait(self, request: Sent) -> None:
        raise AssertionError("no request waits at an API server")

    def crash(self, power: bool) -> None:
        self.up = False
        self.boots += 1
        self._network.broken(self)

    def start(self) -> None:
        self.up = True
        self.paused_until = 0

    def forget(self) -> None:
        del self._network, self._state
