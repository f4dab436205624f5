"""Runs as long as a night's, written in minutes: what `make bench-judge` judges.

Clients contend for the locks of one service in virtual time. What they do next is decided by the
generator of real runs, the faults are drawn and written as real runs have them, and latencies are
those of a recorded run of etcd. The history goes to its file op by op, so that memory stays flat.

The service is sound: where no client is paused, all promises hold. A paused client comes back past
its lease and writes all the same, because nothing guards the resource.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from fencepost.harness.run.run import schedule_of
from fencepost.harness.run.spec import Spec
from fencepost.nemesis.families import describe, facts
from fencepost.nemesis.schedule import Scheduled
from fencepost.nemesis.targets import PRIMARY, STORAGE, renamed
from fencepost.workloads.critical_section import CriticalSection, Next, Settings, work_seed
from fencepost.workloads.locks.registry import LOCKS

MS = 1_000_000
SECOND = 1000 * MS
CALM = ("pause:one", "kill", "partition", "clock")
TROUBLED = ("pause:client", "kill", "partition", "clock")
SLOWEST = 60  # events a second; a run is drawn long enough for this rate, and cut
RECOVERY = 10 * SECOND  # without faults, at the end
TIMEOUT = ["timeout", "HTTPConnectionPool: Read timed out. (read timeout=1.0)"]
KILLED = ["killed", "the worker is gone; whether this happened is not known"]


@dataclass(frozen=True)
class Wanted:
    """A run to write: how many events at least, of how many clients and locks, with what faults."""

    name: str
    events: int
    nemesis: tuple[str, ...] = CALM
    concurrency: int = 5
    locks: int = 1


def write(folder: Path, wanted: Wanted, seed: int = 1) -> int:
    """Write test.json, history.jsonl and logs into `folder`; returns how many events there are."""
    spec = Spec(
        wanted.name,
        "etcd",
        LOCKS["etcd"].read_options({}),
        nemesis=wanted.nemesis,
        concurrency=wanted.concurrency,
        locks=wanted.locks,
        seed=seed,
        time_s=wanted.events / SLOWEST,
    )
    schedule = schedule_of(spec)
    for server in spec.servers:
        (folder / "nodes" / server).mkdir(parents=True)
        (folder / "nodes" / server / "server.log").write_text("ready to serve client requests\n")
    with (folder / "history.jsonl").open("wb", buffering=1 << 20) as file:
        run = _Run(spec, schedule, wanted.events, file.write)
        run.carry_out()
    done_s = run.over_ns / SECOND
    # A run without results is one that was killed.
    (folder / "results.json").write_text('{"run_notes": []}')
    test = spec.to_json() | {
        "time_s": done_s,
        "schedule": [fault.to_json() for fault in schedule if fault.at_s < done_s],
        "versions": {"fencepost": "0.1.0", "etcd": "etcd Version: 3.5.16"},
        "started": "2026-01-02T03:04:05Z",
    }
    (folder / "test.json").write_text(json.dumps(test, indent=1))
    return run.written


@dataclass(eq=False)
class _Client:
    """`life` counts its processes: what was under way for an earlier one finds nobody."""

    node: str
    server: str
    process: int
    section: CriticalSection
    life: int = 0
    alive: bool = True
    wakes: int = 0
    """Until when it is paused (ns)."""
    asked: tuple[str, dict[str, Any]] | None = None
    """Its op without an answer, and with what value it was invoked."""
    grant: _Grant | None = None
    grants: int = 0


@dataclass(eq=False)
class _Grant:
    """A grant as the service has it."""

    client: _Client
    life: int
    name: str
    lock: _Lock
    token: int
    expires: int


@dataclass(eq=False)
class _Lock:
    name: str
    held: _Grant | None = None
    queue: deque[tuple[_Client, int, bool]] = field(default_factory=deque)


class _Run:
    """Virtual time: what happens next is on a heap."""

    def __init__(
        self, spec: Spec, schedule: list[Scheduled], events: int, write: Callable[[bytes], Any]
    ) -> None:
        self.written, self.over_ns, self._now = 0, 0, 0
        self._write, self._encode = write, msgspec.json.Encoder().encode
        self._spec, self._schedule, self._wanted = spec, schedule, events
        self._random = Random(f"{spec.seed}/latencies")
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = count()
        self._ttl = spec.ttl_ms * MS
        self._settings = Settings(locks=spec.locks, ttl_ns=self._ttl)
        self._locks = {lock: _Lock(lock) for lock, _ in spec.locked}
        self._stored: dict[str, tuple[int, str | None]] = {}
        self._tokens = 0
        self._on: dict[str, dict[str, Any]] = {}
        self._clients = [
            _Client(node, spec.servers[n % len(spec.servers)], n, self._section(n))
            for n, node in enumerate(spec.clients)
        ]

    def carry_out(self) -> None:
        for client in self._clients:
            self._next(client, client.life, client.section.first())
        self._plan(0)
        while self._heap:
            self._now, _, act, about = heapq.heappop(self._heap)
            act(*about)

    def _at(self, delay: float, act: Callable[..., None], *about: Any) -> None:
        heapq.heappush(self._heap, (self._now + int(delay), next(self._order), act, about))

    def _ms(self, low: float, high: float) -> float:
        return (low + (high - low) * self._random.random()) * MS

    def _record(
        self,
        process: int | str,
        type: str,
        f: str,
        value: dict[str, Any],
        node: str | None = None,
        error: list[str] | None = None,
    ) -> None:
        row = {"index": self.written, "time": self._now, "process": process, "type": type, "f": f}
        row["value"] = value
        if node:
            row["node"] = node
        if error:
            row["error"] = error
        self._write(self._encode(row) + b"\n")
        self.written += 1
        if self.written >= self._wanted and not self.over_ns:
            self.over_ns = self._now

    # --- clients ------------------------------------------------------------------------------

    def _section(self, process: int) -> CriticalSection:
        return CriticalSection(self._settings, work_seed(str(self._spec.seed), process))

    def _next(self, client: _Client, life: int, op: Next) -> None:
        self._at(op.after_s * SECOND + self._ms(0.05, 0.1), self._invoke, client, life, op)

    def _invoke(self, client: _Client, life: int, op: Next) -> None:
        if client.life != life:
            return
        if self._sleeps(client, self._invoke, client, life, op):
            return
        if op.f == "acquire" and self.over_ns and self._now > self.over_ns + RECOVERY:
            self._record(client.process, "invoke", "close", {}, client.node)
            self._at(self._ms(1, 20), self._closed, client.process, client.node, None)
            return
        client.asked = op.f, self._value(client, op)
        self._record(client.process, "invoke", *client.asked, client.node)
        if self._cut(client, STORAGE if op.f in ("read", "write") else client.server):
            type = "fail" if op.f in ("acquire", "read") else "info"
            self._at(SECOND, self._answer, client, life, type, {}, TIMEOUT)
        else:
            self._at(self._ms(0.3, 3), self._serve, client, life, *client.asked)

    def _value(self, client: _Client, op: Next) -> dict[str, Any]:
        if op.f != "write":
            return op.value
        assert client.grant
        text = f"{client.node}.{client.process}.{client.grants}"
        return {"value": text, "token": client.grant.token, **op.value}

    def _answer(
        self,
        client: _Client,
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
        self._record(client.process, type, f, value, client.node, error)
        if f == "release":
            client.grant = None
        op = client.section.next(f, type, value)
        if type == "info":
            self._leave(client)
            self._succeed(client)
        else:
            self._next(client, client.life, op)

    def _sleeps(self, client: _Client, act: Callable[..., None], *about: Any) -> bool:
        """Whether the client is paused: what was to happen does so once it is awake."""
        if self._now >= client.wakes:
            return False
        self._at(client.wakes - self._now + self._ms(1, 5), act, *about)
        return True

    def _leave(self, client: _Client) -> None:
        """A client whose op is unknown closes, which ends its grant where it gets through."""
        self._record(client.process, "invoke", "close", {}, client.node)
        late = SECOND if self._cut(client, client.server) else self._ms(2, 20)
        self._at(late, self._closed, client.process, client.node, client.grant)

    def _closed(self, process: int, node: str, grant: _Grant | None) -> None:
        self._record(process, "ok", "close", {}, node)
        if grant and self._now < grant.expires:
            self._free(grant)

    def _succeed(self, client: _Client) -> None:
        client.process += len(self._clients)
        client.life, client.alive = client.life + 1, True
        client.grant, client.asked, client.wakes = None, None, 0
        client.section = self._section(client.process)
        self._next(client, client.life, client.section.first())

    # --- the service --------------------------------------------------------------------------

    def _serve(self, client: _Client, life: int, f: str, value: dict[str, Any]) -> None:
        if f == "acquire":
            lock = self._locks[value["lock"]]
            lock.queue.append((client, life, lock.held is not None or bool(lock.queue)))
            self._grant(lock)
            return
        grant, type, found, error = client.grant, "ok", {}, None
        if client.life != life:  # it was killed meanwhile; its write arrives all the same
            grant = None
        if f == "read":
            version, text = self._stored.get(value["resource"], (0, None))
            found = {"value": text, "version": version}
        elif f == "write":
            version = self._stored.get(value["resource"], (0, None))[0] + 1
            self._stored[value["resource"]] = version, value["value"]
            found = {"stored": version}
        elif grant is None or grant.lock.held is not grant:
            type, error = "fail", ["not-held", "the key is gone: the lease ended"]
        elif f == "extend":
            grant.expires = self._now + self._ttl
            found = {"deadline": grant.expires - 2 * MS}
        else:
            self._free(grant)
        self._at(self._ms(0.3, 4), self._answer, client, life, type, found, error)

    def _grant(self, lock: _Lock) -> None:
        if lock.held or not lock.queue:
            return
        client, life, waited = lock.queue.popleft()
        self._tokens += 1
        client.grants += client.life == life
        name = f"{client.process}-{client.grants}"
        grant = _Grant(client, life, name, lock, self._tokens, self._now + self._ttl)
        lock.held = grant
        self._at(self._ttl / 3, self._renew, grant)
        if client.life == life:
            client.grant = grant
            value = {"token": grant.token, "deadline": grant.expires - 5 * MS, "hold": name}
            value["wakeups"] = int(waited)
            self._at(self._ms(2, 8), self._answer, client, life, "ok", value)

    def _free(self, grant: _Grant) -> None:
        if grant.lock.held is grant:
            grant.lock.held = None
            self._at(self._ms(1, 4), self._grant, grant.lock)

    def _renew(self, grant: _Grant) -> None:
        """The client's library keeps the lease alive while it can; else it is over in time."""
        client = grant.client
        if grant.lock.held is not grant:
            return
        if self._keeps(client, grant):
            grant.expires = self._now + self._ttl
            value = {"lock": grant.lock.name, "hold": grant.name}
            value["deadline"] = grant.expires - 5 * MS
            self._record(client.process, "info", "renewed", value, client.node)
            self._at(self._ttl / 3, self._renew, grant)
        elif self._now < grant.expires:
            self._at(min(self._ttl / 3, grant.expires - self._now), self._renew, grant)
        else:
            self._free(grant)

    def _keeps(self, client: _Client, grant: _Grant) -> bool:
        """Whether the client's library has the grant and gets through to keep it alive."""
        there = client.alive and client.life == grant.life and self._now >= client.wakes
        granted = client.asked is None or client.asked[0] != "acquire"
        return there and granted and not self._cut(client, client.server)

    # --- faults -------------------------------------------------------------------------------

    def _plan(self, number: int) -> None:
        """One fault after another, so that those to come do not fill the heap."""
        if number < len(self._schedule) and not self.over_ns:
            fault = self._schedule[number]
            self._at(max(0, fault.at_s * SECOND - self._now), self._strike, number, fault)

    def _strike(self, number: int, drawn: Scheduled) -> None:
        self._plan(number + 1)
        if self.over_ns:
            return
        unsaid = {name: what for name, what in drawn.arguments.items() if name != "words"}
        targets, arguments = renamed(drawn.targets, unsaid, {PRIMARY: self._spec.servers[0]})
        words = describe(drawn.family, targets, arguments)
        value = {"fault": f"{drawn.family}-{number}", "phase": "start", "targets": targets}
        value["arguments"] = arguments | {"words": words}
        known = facts(drawn.family, targets, arguments)
        self._record("nemesis", "invoke", drawn.family, value | known)
        self._at(self._ms(3, 500), self._is_on, drawn, value | known)

    def _is_on(self, drawn: Scheduled, value: dict[str, Any]) -> None:
        self._on[value["fault"]] = value | {"family": drawn.family}
        struck = [client for client in self._clients if client.node in value["targets"]]
        killed = [self._kill(client) for client in struck if drawn.family == "kill"]
        for client in struck:
            if drawn.family == "pause" and client.alive:
                client.wakes = self._now + int(drawn.duration_s * SECOND)
        receipt = self._receipt(value, "T") | ({"processes": killed} if killed else {})
        self._record("nemesis", "ok", drawn.family, value | {"receipt": receipt})
        self._at(drawn.duration_s * SECOND, self._heal, drawn.family, value)

    def _heal(self, family: str, value: dict[str, Any]) -> None:
        value = {name: value[name] for name in ("fault", "targets", "arguments")}
        value["phase"] = "end"
        self._record("nemesis", "invoke", family, value)
        self._at(self._ms(3, 300), self._is_off, family, value)

    def _is_off(self, family: str, value: dict[str, Any]) -> None:
        del self._on[value["fault"]]
        for client in self._clients:
            if client.node in value["targets"] and not client.alive:
                self._succeed(client)
        self._record("nemesis", "ok", family, value | {"receipt": self._receipt(value, "S")})

    def _receipt(self, value: dict[str, Any], state: str) -> dict[str, Any]:
        links = value["arguments"].get("links", ())
        said = "silent" if state == "T" else "open"
        if links:
            how = f"{said} across {len(links)} of {len(links)} probed ways"
            probes = {f"{near} to {far}": said for near, far in links}
            return {"proved": True, "how": how, "probes": probes}
        how = "; ".join(f"pid 41 on {node} is in state {state}" for node in value["targets"])
        return {"proved": True, "how": how, "pid": 41, "state": state}

    def _kill(self, client: _Client) -> int:
        if client.alive and client.asked:
            f, _ = client.asked
            self._record(client.process, "info", f, {}, client.node, KILLED)
        client.life, client.alive, client.asked = client.life + 1, False, None
        return client.process

    def _cut(self, client: _Client, far: str) -> bool:
        """Whether a fault keeps this client from that node."""
        for fault in self._on.values():
            if fault["family"] in ("pause", "kill") and far in fault["targets"]:
                return True
            if [client.node, far] in fault["arguments"].get("links", ()):
                return True
        return False
