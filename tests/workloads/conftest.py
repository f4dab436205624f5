"""Redis servers in memory (fakeredis, with Lua), on one clock that the test and the lock move."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import fakeredis
import pytest
from redis.exceptions import ResponseError

from fencepost.workloads.contract.lock import Env, Failed, Indeterminate

MS = 1_000_000


class Server:
    """One server in memory.

    `state`: up, down (connections are refused), silent (requests are lost) or mute (they take
    effect and their replies are lost). An answer takes `takes_ms`. `log` has the clients' requests,
    without the test's own.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.state = "up"
        self.takes_ms = 0
        self.log: list[tuple[Any, ...]] = []
        client = fakeredis.FakeRedis(
            server=fakeredis.FakeServer(), decode_responses=True, protocol=2
        )
        self._connection = client.connection_pool.get_connection()

    def ask(self, *command: Any) -> Any:
        self._connection.send_command(*command)
        return self._connection.read_response()

    def get(self, key: str) -> Any:
        return self.ask("GET", key)

    def delete(self, key: str) -> int:
        return int(self.ask("DEL", key))

    def keys(self) -> set[str]:
        return set(self.ask("KEYS", "*"))


class Link:
    def __init__(self, server: Server, timeout_s: float) -> None:
        self._server = server
        self._timeout_ns = round(timeout_s * 1000) * MS
        self._answer: Any = None
        self.closed = False

    def send(self, *command: Any) -> None:
        if self._server.state == "down":
            raise Failed("unreachable", "refused")
        self._answer = None
        if self._server.state != "silent":
            self._server.log.append(command)
            try:
                self._answer = self._server.ask(*command)
            except ResponseError as error:
                self._answer = Failed("refused", str(error))

    def receive(self) -> Any:
        if self._server.state != "up" or self._server.takes_ms * MS > self._timeout_ns:
            self._server.world.now += self._timeout_ns
            raise Indeterminate("timeout", "silence")
        self._server.world.now += self._server.takes_ms * MS
        if isinstance(self._answer, Failed):
            raise self._answer
        return self._answer

    def call(self, *command: Any) -> Any:
        self.send(*command)
        return self.receive()

    def close(self) -> None:
        self.closed = True


class World:
    """Servers by name, created on first use; one clock, in ns; the clients' requests to it."""

    def __init__(self) -> None:
        self.now = 0
        self.servers: dict[str, Server] = {}
        self.links: list[Link] = []
        self.slept_s: list[float] = []
        self.reached: list[str] = []
        self.threads: list[Callable[[], None]] = []
        self.said: list[tuple[str, str, Any]] = []

    def __getitem__(self, node: str) -> Server:
        if node not in self.servers:
            self.servers[node] = Server(self)
        return self.servers[node]

    def connect(self, node: str, timeout_s: float) -> Link:
        link = Link(self[node], timeout_s)
        self.links.append(link)
        return link

    def env(self, seed: int = 0) -> Env:
        def sleep(seconds: float) -> None:
            self.slept_s.append(seconds)
            self.now += round(seconds * 1e9)

        return Env(
            now=lambda: self.now,
            sleep=sleep,
            random=Random(seed),
            connect=self.connect,
            address=lambda node: (node, 0),
            failpoint=self.reached.append,
            background=self.threads.append,
            renewed=lambda secret, deadline: self.said.append(("renewed", secret, deadline)),
            lost=lambda secret, why: self.said.append(("lost", secret, why)),
            expired=lambda why: self.said.append(("expired", "", why)),
            requeued=lambda why: self.said.append(("requeued", "", why)),
        )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    # Before each command it reads the time once, by which keys expire.
    clock = SimpleNamespace(time=lambda: made.now / 1e9)
    monkeypatch.setattr("fakeredis._socket._base.time", clock)
    return made
