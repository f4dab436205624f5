"""The servers of the lock service: which are up, and which reach a majority of the others.

A request is applied once its server is up and reaches a majority, and at once for all of them: the
service is one state machine. Servers of a quorum are `independent`: each applies requests while it
is up, whether it reaches others or not. A server that is paused applies its pending requests when
it resumes; one that is down loses them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulated.network import Network
from tests.simulated.world import World


class Server:
    """`offset`: how far a fault has set its wall clock ahead (ns). `busy`: until when it works on
    the requests that it has."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.up = True
        self.paused = False
        self.slow = False
        self.offset = 0
        self.busy = 0
        self.waiting: list[tuple[Callable[..., None], tuple[Any, ...]]] = []


class Cluster:
    """`restored` is called when servers become reachable."""

    def __init__(
        self, world: World, network: Network, names: list[str], independent: bool = False
    ) -> None:
        self._world = world
        self._network = network
        self._independent = independent
        self.servers = {name: Server(name) for name in names}
        self.restored: Callable[[], None] = lambda: None
        self._serving = frozenset(names)

    @property
    def names(self) -> list[str]:
        return list(self.servers)

    def serves(self, name: str) -> bool:
        """Return whether requests to this server are applied now."""
        return name in self._serving

    def works(self) -> bool:
        """Return whether any server applies requests."""
        return bool(self._serving)

    def take(self, name: str, act: Callable[..., None], *given: Any) -> None:
        """Receive a request."""
        server = self.servers[name]
        if not server.up:
            return
        if not self.serves(name):
            server.waiting.append((act, given))
            return
        delay = self._world.between(30, 150) if server.slow else self._world.between(0.05, 1)
        at = self._world.now + delay
        if self._independent:  # one request after the other
            at = server.busy = max(at, server.busy)
        self._world.at(at, self._apply, name, act, given)

    def down(self, name: str) -> None:
        self.servers[name].up = False
        self.servers[name].waiting.clear()

    def changed(self) -> None:
        """Apply pending requests after faults started or ended."""
        self._serving = frozenset(name for name in self.servers if self._can_serve(name))
        for name, server in self.servers.items():
            if server.waiting and self.serves(name):
                waiting, server.waiting = server.waiting, []
                for act, given in waiting:
                    self.take(name, act, *given)
        if self.works():
            self.restored()

    def _apply(self, name: str, act: Callable[..., None], given: tuple[Any, ...]) -> None:
        server = self.servers[name]
        if not server.up:
            return
        if not self.serves(name):
            server.waiting.append((act, given))
            return
        act(*given)

    def _can_serve(self, name: str) -> bool:
        server = self.servers[name]
        if not server.up or server.paused:
            return False
        if self._independent:
            return True
        reached = 1
        for other, server in self.servers.items():
            if other != name and server.up and not server.paused:
                both = self._network.open(name, other) and self._network.open(other, name)
                reached += both
        return reached > len(self.servers) // 2
