"""Simulates an API server. A command is a decoded HTTP request, the reply its status and body.

The store behind it (etcd) is always available, and keeps every answered write. A server that is
killed loses its connections and the changes that it had for watches, and nothing else.
"""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.kubernetes.session import Session
from fencepost.hunt.models.kubernetes.state import State
from fencepost.hunt.models.kubernetes.watches import Watch
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.network import Request as Sent
from fencepost.hunt.sim.world import Timer

PORT = 6443


class KubernetesServer(Server):
    """One API server."""

    __slots__ = ("_caches", "_network", "_state", "_watches")

    port = PORT

    def __init__(self, name: str, index: int, network: Network, state: State) -> None:
        super().__init__(name, index)
        self._network = network
        self._state = state
        self._caches = state.started()
        self._watches: list[Watch] = []
        self.kept = True

    def session(self) -> Session:
        return Session()

    def handle(self, command: tuple[Any, ...]) -> Any:
        method, path, query, media, body = command
        now_ns = self.clock.ns(self._network.world.now)
        return self._state.answer(method, path, query, media, body, now_ns)

    def watched(self, path: str, query: str, session: Session) -> bytes:
        """Begin a watch on a connection, and return its first events."""
        world = self._network.world
        watch = self._state.watch(path, query, self._caches, world.now)
        timers: list[Timer] = []

        def due() -> None:
            for timer in timers:
                timer.off = True
            timers.clear()
            if watch in self._watches and session.say(watch, world.now):
                at(watch.next_ns)
            else:
                self._end(watch)

        def at(when_ns: int) -> None:
            timers.append(Timer(self, due))
            world.at(max(when_ns, world.now), timers[-1])

        self._watches.append(watch)
        first = watch.take(world.now)
        at(watch.next_ns)
        watch.wake = lambda: at(world.now)
        return first

    def _end(self, watch: Watch) -> None:
        watch.close()
        if watch in self._watches:
            self._watches.remove(watch)

    def wait(self, request: Sent) -> None:
        raise AssertionError("no request waits at an API server")

    def crash(self, power: bool) -> None:
        self.up = False
        self.boots += 1
        self._network.broken(self)
        for watch in list(self._watches):
            self._end(watch)
        self._state.ended(self._caches)

    def start(self) -> None:
        self.up = True
        self._caches = self._state.started()
        self.paused_until = 0

    def forget(self) -> None:
        del self._network, self._state, self._caches
        self._watches.clear()
