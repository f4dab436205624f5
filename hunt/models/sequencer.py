"""Simulates the resource's server that checks each write with the lock service.

It uses the class that runs on the storage node (workloads/resources/server.py), with a local Redis
that answers at once, and links to the simulated etcd servers, which no fault cuts. It executes one
request at a time, in a separate task, because a write waits for etcd.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from fencepost.hunt.models.http import Pool
from fencepost.hunt.models.model import Storage
from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.sim.network import LATER, Refusal, Request, Server
from fencepost.workloads.contract.lock import Failed
from fencepost.workloads.resources.server import ASK_S, Store
from fencepost.workloads.transport.etcd_gateway import Gateway

_REDIS = 98


class SequencerServer(Server):
    """The server on the storage node. A command is one JSON object, as its client sends it."""

    __slots__ = ("_answers", "_begin", "_busy", "_network", "_waiting")

    def __init__(self, site: Storage) -> None:
        super().__init__(site.name, site.index)
        self._begin, self._network = site.begin, site.network
        self._waiting: deque[Request] = deque()
        self._busy = False
        network, world = site.network, site.network.world
        etcd = {server.name: server for server in site.servers}

        def pool(host: str, port: int) -> Pool:
            return Pool(network, self, etcd[host])

        beside = RedisServer(f"{site.name}-redis", _REDIS, network, "always")
        addresses = [(server, 0) for server in etcd]
        self._answers = Store(_Beside(beside), Gateway(addresses, ASK_S, lambda: world.now, pool))

    def handle(self, command: tuple[Any, ...]) -> Any:
        return LATER

    def wait(self, request: Request) -> None:
        self._waiting.append(request)
        if not self._busy:
            self._busy = True
            self._begin(self, self._serve)

    def _serve(self) -> None:
        while self._waiting:
            request = self._waiting.popleft()
            self._network.answer(request, self._answers.answer(request.command[0]))
        self._busy = False

    def crash(self, power: bool) -> None:
        raise AssertionError("no fault concerns the storage server")

    def start(self) -> None: ...

    def forget(self) -> None:
        del self._begin, self._network, self._answers


class _Beside:
    """A Link to a Redis on the same machine."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._reply: Any = None

    def send(self, *command: Any) -> None:
        self._reply = self._server.handle(command)

    def receive(self) -> Any:
        if isinstance(self._reply, Refusal):
            raise Failed("refused", str(self._reply))
        return self._reply

    def call(self, *command: Any) -> Any:
        self.send(*command)
        return self.receive()

    def close(self) -> None: ...
