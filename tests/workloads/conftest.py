"""Redis servers in memory, on one clock that only the test and the lock's own sleep move.

They know the commands that fencepost's locks and resources send, and its Lua scripts by
identity: an unknown one is an error. That the scripts do what their stand-ins here do, the
tests on real servers show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from fencepost.workloads.locks.lock import Env, Failed, Indeterminate
from fencepost.workloads.locks.redis import (
    ACQUIRE_COUNTED,
    ACQUIRE_PAIRED,
    EXTEND,
    RELEASE,
    RELEASE_PAIRED,
)
from fencepost.workloads.resources.redis_register import write_script
from fencepost.workloads.resources.registry import GUARDS

MS = 1_000_000


@dataclass
class Server:
    """`state`: up, down (connections are refused), silent (requests are lost) or mute (they
    take effect and their replies are lost). An answer takes `takes_ms`."""

    world: World
    state: str = "up"
    takes_ms: int = 0
    data: dict[str, Any] = field(default_factory=dict)
    expires: dict[str, int] = field(default_factory=dict)
    log: list[tuple[Any, ...]] = field(default_factory=list)

    def get(self, key: str) -> Any:
        if self.expires.get(key, self.world.now + 1) <= self.world.now:
            self.delete(key)
        return self.data.get(key)

    def delete(self, key: str) -> int:
        self.expires.pop(key, None)
        return int(self.data.pop(key, None) is not None)

    def execute(self, *command: Any) -> Any:
        self.log.append(command)
        match command:
            case ("SET", key, value, "NX", *expiry):
                if self.get(key) is not None:
                    return None
                self.data[key] = value
                if expiry:
                    assert expiry[0] == "PX"
                    self.expires[key] = self.world.now + expiry[1] * MS
                return "OK"
            case ("INCR", key):
                self.data[key] = int(self.get(key) or 0) + 1
                return self.data[key]
            case ("DEL", key):
                return self.delete(key) if self.get(key) is not None else 0
            case ("HMGET", key, *fields):
                return [(self.get(key) or {}).get(name) for name in fields]
            case ("EVAL", script, count, *rest):
                return self._script(script, rest[:count], rest[count:])
        raise AssertionError(f"a command that this Redis does not know: {command}")

    def _script(self, script: str, keys: list[str], args: list[Any]) -> Any:
        if script is ACQUIRE_COUNTED:
            granted = self.execute("SET", keys[0], args[0], "NX", "PX", args[1])
            return self.execute("INCR", keys[1]) if granted else None
        if script is ACQUIRE_PAIRED:
            if not self.execute("SET", keys[0], args[0], "NX", "PX", args[1]):
                return None
            number = self.execute("INCR", keys[1])
            given = self.data.setdefault(keys[2], set())
            given.add(number)
            return [number, min(given)]
        if script is RELEASE_PAIRED:
            if self.get(keys[0]) != args[0]:
                return 0
            given = self.data.setdefault(keys[1], set())
            given -= {n for n in given if n == args[1] or (args[2] and n < args[1])}
            return self.delete(keys[0])
        if script is RELEASE:
            return self.delete(keys[0]) if self.get(keys[0]) == args[0] else 0
        if script is EXTEND:
            if self.get(keys[0]) != args[0]:
                return 0
            self.expires[keys[0]] = self.world.now + args[1] * MS
            return 1
        if script == write_script(GUARDS[args[0]]):
            return self._write(self.data.setdefault(keys[0], {}), *args)
        raise AssertionError(f"a script that this Redis does not know: {script}")

    @staticmethod
    def _write(
        register: dict[str, Any], guard: str, value: Any, read: Any, token: Any, minor: Any
    ) -> list[int]:
        highest, version = int(register.get("highest", -1)), int(register.get("version", 0))
        if guard == "fenced":
            if int(token) < highest:
                return [0, highest]
            register["highest"] = token
        elif guard == "paired":
            accepted = int(minor) > highest or token == register.get("writer")
            if int(token) > highest:
                register |= {"highest": token, "writer": token if accepted else None}
            if not accepted:
                return [0, highest]
        elif guard == "compare-and-set" and read != version:
            return [0, version]
        register["value"] = value
        register["version"] = int(register.get("version", 0)) + 1
        return [1, register["version"]]


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
            self._answer = self._server.execute(*command)

    def receive(self) -> Any:
        if self._server.state != "up" or self._server.takes_ms * MS > self._timeout_ns:
            self._server.world.now += self._timeout_ns
            raise Indeterminate("timeout", "silence")
        self._server.world.now += self._server.takes_ms * MS
        return self._answer

    def call(self, *command: Any) -> Any:
        self.send(*command)
        return self.receive()

    def close(self) -> None:
        self.closed = True


class World:
    """Servers by name, made when first asked for; one clock, in ns; what clients did with it."""

    def __init__(self) -> None:
        self.now = 0
        self.servers: dict[str, Server] = {}
        self.links: list[Link] = []
        self.slept_s: list[float] = []
        self.reached: list[str] = []
        self.threads: list[Callable[[], None]] = []
        self.said: list[tuple[str, str, Any]] = []

    def __getitem__(self, node: str) -> Server:
        return self.servers.setdefault(node, Server(self))

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
        )


@pytest.fixture
def world() -> World:
    return World()
