"""The clients of a virtual run, driven by the generator of real runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fencepost.harness.execute.timed import client_settings
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.targets import STORAGE
from fencepost.workloads.client.critical_section import CriticalSection, Next, Settings, work_seed
from long_runs.service import Service
from long_runs.state import Client, Cuts, Grant
from long_runs.virtual_time import SECOND, VirtualTime

RECOVERY = 10 * SECOND  # without faults, at the end
TIMEOUT = ["timeout", "HTTPConnectionPool: Read timed out. (read timeout=1.0)"]
KILLED = ["killed", "the worker is gone; whether this happened is not known"]


class Clients:
    def __init__(self, time: VirtualTime, cuts: Cuts, service: Service, spec: Spec) -> None:
        self._time, self._cuts, self._service, self._seed = time, cuts, service, spec.seed
        self._settings = msgspec.convert(client_settings(spec), Settings)
        self.all = [
            Client(node, spec.servers[n % len(spec.servers)], n, self._section(n))
            for n, node in enumerate(spec.clients)
        ]

    def start(self) -> None:
        for client in self.all:
            self._next(client, client.life, client.section.first(0))

    def _section(self, process: int) -> CriticalSection:
        return CriticalSection(self._settings, work_seed(str(self._seed), process))

    def _next(self, client: Client, life: int, op: Next) -> None:
        self._time.at(
            op.after_s * SECOND + self._time.ms(0.05, 0.1), self._invoke, client, life, op
        )

    def _invoke(self, client: Client, life: int, op: Next) -> None:
        if client.life != life:
            return
        if self._sleeps(client, self._invoke, client, life, op):
            return
        if (
            op.f == "acquire"
            and self._time.over_ns
            and self._time.now > self._time.over_ns + RECOVERY
        ):
            self._time.record(client.process, "invoke", "close", {}, client.node)
            self._time.at(self._time.ms(1, 20), self._closed, client.process, client.node, None)
            return
        client.asked = op.f, self._value(client, op)
        self._time.record(client.process, "invoke", *client.asked, client.node)
        if self._cuts.between(client, STORAGE if op.f in ("read", "write") else client.server):
            type = "fail" if op.f in ("acquire", "read") else "info"
            self._time.at(SECOND, self._answer, client, life, type, {}, TIMEOUT)
        else:
            self._time.at(
                self._time.ms(0.3, 3),
                self._service.serve,
                client,
                life,
                *client.asked,
                self._answer,
            )

    def _value(self, client: Client, op: Next) -> dict[str, Any]:
        if op.f != "write":
            return op.value
        assert client.grant
        text = f"{client.node}.{client.process}.{client.grants}"
        return {"value": text, "token": client.grant.token, **op.value}

    def _answer(
        self,
        client: Client,
        life: int,
        type: str,
        value: dict[str, Any],
        error: list[str] | None = None,
    ) -> None:
        if client.life != life or client.asked is None:
            return
        if self._sleeps(client, self._answer, client, life, type, value, error):
            return
        f, asked = client.asked
        value, client.asked = asked | value, None
        self._time.record(client.process, type, f, value, client.node, error)
        if f == "release":
            client.grant = None
        op = client.section.next(f, type, value, self._time.now)
        if type == "info":
            self._leave(client)
            self.succeed(client)
        else:
            self._next(client, client.life, op)

    def _sleeps(self, client: Client, act: Callable[..., None], *about: Any) -> bool:
        """Return whether the client is paused: its next event then waits until it resumes."""
        if self._time.now >= client.wakes:
            return False
        self._time.at(client.wakes - self._time.now + self._time.ms(1, 5), act, *about)
        return True

    def _leave(self, client: Client) -> None:
        """Close a client whose op is unknown, which ends its grant if the close gets through."""
        self._time.record(client.process, "invoke", "close", {}, client.node)
        late = SECOND if self._cuts.between(client, client.server) else self._time.ms(2, 20)
        self._time.at(late, self._closed, client.process, client.node, client.grant)

    def _closed(self, process: int, node: str, grant: Grant | None) -> None:
        self._time.record(process, "ok", "close", {}, node)
        if grant and self._time.now < grant.expires:
            self._service.free(grant)

    def succeed(self, client: Client) -> None:
        """Start the successor process."""
        client.process += len(self.all)
        client.life, client.alive = client.life + 1, True
        client.grant, client.asked, client.wakes = None, None, 0
        client.section = self._section(client.process)
        self._next(client, client.life, client.section.first(self._time.now))

    def kill(self, client: Client) -> int:
        """End its process in any state; return which it was."""
        if client.alive and client.asked:
            f, _ = client.asked
            self._time.record(client.process, "info", f, {}, client.node, KILLED)
        client.life, client.alive, client.asked = client.life + 1, False, None
        return client.process
