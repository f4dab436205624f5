"""The program of a client: it takes the lock, reads, writes, releases, and reports each op.

Its events are those of the harness' own worker. After an op of unknown outcome it closes its
sessions, reports that (`close`), and continues as its successor, under a new number. It can be
stopped and killed at every point where it waits, and at named points.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from tests.simulated.cluster import Cluster
from tests.simulated.library import Grant, Host, LeaseLock, Line, Refused, Unknown
from tests.simulated.network import Network
from tests.simulated.plan import Plan
from tests.simulated.resource import STORAGE, Store
from tests.simulated.service import Owner, Service
from tests.simulated.sessions import SessionLock
from tests.simulated.truth import Held, Truth
from tests.simulated.world import MS, Process, Steps, World

Record = Callable[..., None]


class Gone(Exception):
    """Raised when the process has ended with an op of unknown outcome."""


class Sim(Protocol):
    """State that all parts of a run share."""

    world: World
    network: Network
    cluster: Cluster
    service: Service
    store: Store
    plan: Plan
    truth: Truth

    def record(
        self,
        stamp: int,
        process: int | str,
        type: str,
        f: str,
        value: dict[str, Any],
        error: list[str] | None = None,
        node: str | None = None,
    ) -> None: ...


class Client:
    """`announced`: the number by which the harness knows it; `open_ops`: its open ops."""

    def __init__(self, sim: Sim, number: int) -> None:
        self.sim = sim
        self.node = sim.plan.client_names[number]
        self.announced = number
        self.process = number
        self.open_ops: list[tuple[int, str]] = []
        self.armed = ""
        self.reached: Callable[[], None] = lambda: None
        self._error = sim.plan.errors[number]
        self._values = count(1)
        self._until = sim.plan.length
        self._start()

    def _start(self) -> None:
        world = self.sim.world
        self.os = Process(world, self.node)
        self._line = Line(world, self.sim.network, self.sim.cluster, self.os)
        self._begin()
        self.os.start(self._run())

    def _begin(self) -> None:
        """Return a process' own library, with sessions of its own."""
        self._holds: dict[Owner, Held] = {}
        self._gone: dict[Owner, str] = {}
        self._waits_for = ""
        self._kind = ""  # of the last refusal
        process = self.process
        host = Host(
            *(self.sim.world, self.sim.network, self.sim.cluster, self.sim.service, self.sim.plan),
            process=self.os,
            line=self._line,
            stamp=self.stamp,
            reach=self.reach,
            renewed=lambda grant: self._renewed(process, grant),
            lost=lambda grant, why: self._lost(process, grant, why),
            expired=lambda why: self._expired(process, why),
        )
        make = LeaseLock if self.sim.plan.ends_with == "lease" else SessionLock
        self._lock = make(host, f"{self.node}.{process}")

    def stamp(self) -> int:
        return self.sim.world.now + self._error

    def restart(self) -> None:
        """Start a new program, under the number of a successor."""
        self.buried(self.os)
        self.announced += self.sim.plan.clients
        self.process = self.announced
        self._start()

    def die(self, certain: int) -> None:
        """Kill or crash it; `certain`: until when it certainly lived, apart from its last op."""
        self.os.kill()
        self.armed = ""
        for held in self._holds.values():
            held.died(self.sim.world.now, max(certain, self._last))

    def buried(self, os: Process) -> None:
        """Let the harness notice that a program is dead, and complete its open ops."""
        if os is not self.os:
            return
        for process, f in self.open_ops:
            error = ["killed", "the worker has ended; whether this happened is not known"]
            self.sim.record(self.sim.world.now, process, "info", f, {}, error, self.node)
        self.open_ops.clear()

    def reach(self, point: str) -> Steps:
        """Pass a named point: it may be stopped here, or take its time."""
        if self.armed == point:
            self.armed = ""
            self.reached()
            yield self.sim.world.now
        elif self.sim.world.chance(0.2):
            most = 40 if self.sim.world.chance(0.1) else 3
            yield self.sim.world.now + self.sim.world.between(0, most)

    # Events.

    _last = 0

    def _event(self, type: str, f: str, value: dict[str, Any], error: Refused | None = None) -> int:
        stamp = self._last = self.stamp()
        told = None if error is None else [error.kind, error.text]
        self.sim.record(stamp, self.process, type, f, dict(value), told, self.node)
        return stamp

    def _renewed(self, process: int, grant: Grant) -> None:
        held = self._holds.get(grant.owner)
        if process == self.process and held is not None:
            value = {"lock": grant.lock, "hold": held.name, "deadline": grant.deadline}
            held.told.append((self._event("info", "renewed", value), grant.deadline))

    def _lost(self, process: int, grant: Grant, why: str) -> None:
        if process != self.process or grant.owner in self._gone:
            return
        self._gone[grant.owner] = why
        held = self._holds.get(grant.owner)
        if held is not None:
            self._say_lost(held, why)

    def _say_lost(self, held: Held, why: str) -> None:
        value = {"lock": held.lock, "hold": held.name}
        held.ended(self._event("info", "lost", value, Refused("lost", why)), "lost")

    def _expired(self, process: int, why: str) -> None:
        if process == self.process and self._waits_for:
            value = {"lock": self._waits_for, "hold": None}
            self._event("info", "lost", value, Refused("expired", why))

    # Ops.

    def _run(self) -> Steps:
        world, plan = self.sim.world, self.sim.plan
        yield world.now + world.between(20, 20 + plan.rest / MS)
        while world.now < self._until:
            try:
                yield from self._section()
            except Gone:
                yield from self._succeed()
            yield world.now + world.between(1, 1 + plan.rest / MS)
        yield from self._close()

    def _section(self) -> Steps:
        plan, world, random = self.sim.plan, self.sim.world, self.sim.world.random
        lock, resource = random.choice(plan.pairs)
        shared = world.chance(plan.shared)
        grant = yield from self._acquire(lock, shared)
        if grant is None:
            return
        rounds = random.randrange(2, 6) if world.chance(plan.lingers) else 1
        for _ in range(rounds):
            yield world.now + world.between(0, plan.think / MS)
            if world.chance(plan.extends) and not (yield from self._extend(grant)):
                break
        else:
            yield from self._work(grant, resource, shared)
        yield from self._release(grant)

    def _work(self, grant: Grant, resource: str, shared: bool) -> Steps:
        world, plan = self.sim.world, self.sim.plan
        for _ in range(world.random.choice((1, 1, 2))):
            version = yield from self._read(grant, resource)
            if shared or version is None:
                return
            yield world.now + world.between(0, plan.think / MS)
            if not (yield from self._write(grant, resource, version)):
                return

    def _acquire(self, lock: str, shared: bool) -> Steps:
        ttl = self._ttl()
        value: dict[str, Any] = {"lock": lock, "ttl": ttl}
        if shared:
            value["mode"] = "shared"
        self._waits_for = lock
        asked = self._invoke("acquire", value)
        grant = yield from self._tried("acquire", value, self._lock.acquire(lock, ttl, shared))
        self._waits_for = ""
        if grant is None:
            return None
        held = self._told(grant, value, asked)
        yield from self.reach("acquired")
        if grant.owner in self._gone:
            self._say_lost(held, self._gone[grant.owner])
        return grant

    def _ttl(self) -> int:
        plan = self.sim.plan
        return int(
            plan.ttl * self.sim.world.random.choice((0.5, 1, 1.5)) if plan.uneven else plan.ttl
        )

    def _told(self, grant: Grant, value: dict[str, Any], asked: int) -> Held:
        """Report that it was granted; from here on it is held."""
        plan = self.sim.plan
        name = f"{self.process}-{next(self._values)}"
        answer: dict[str, Any] = {"token": grant.token, "deadline": grant.deadline}
        if not plan.nameless:
            answer["hold"] = name
        if grant.wakeups is not None:
            answer["wakeups"] = grant.wakeups
        start = self._event("ok", "acquire", value | answer)
        self.open_ops.pop()
        held = Held(
            lock=grant.lock,
            name=name,
            node=self.node,
            process=self.process,
            shared=value.get("mode") == "shared",
            token=grant.token,
            order=self.sim.service.order[grant.owner],
            ttl=value["ttl"],
            asked=asked,
            start=start,
            began=self.sim.world.now,
            told=[(start, grant.deadline)],
            error=self._error,
        )
        self._holds[grant.owner] = held
        self.sim.truth.holds.append(held)
        return held

    def _named(self, grant: Grant) -> dict[str, Any]:
        held = self._holds[grant.owner]
        return {} if self.sim.plan.nameless else {"hold": held.name}

    def _extend(self, grant: Grant) -> Steps:
        held = self._holds[grant.owner]
        ttl = max(held.ttl, self._ttl())
        value = {"lock": grant.lock, "ttl": ttl} | self._named(grant)
        sent = self._invoke("extend", value)
        done = yield from self._tried("extend", value, self._lock.extend(grant, ttl), True)
        if done is None:
            return False
        stamp = self._event("ok", "extend", value | {"deadline": grant.deadline})
        self.open_ops.pop()
        held.told.append((stamp, grant.deadline))
        held.extended.append((sent, stamp))
        return True

    def _release(self, grant: Grant) -> Steps:
        plan, world = self.sim.plan, self.sim.world
        held = self._holds[grant.owner]
        yield from self.reach("before-release")
        over = False  # an answer said so
        for again in range(3):
            value = {"lock": grant.lock} | self._named(grant)
            sent = self._invoke("release", value)
            held.ended(sent, "release")
            done = yield from self._tried("release", value, self._lock.release(grant), True)
            if done is not None:
                answered = self._event("ok", "release", value)
                self.open_ops.pop()
                held.released.append((sent, answered))
                if again or not world.chance(plan.twice):
                    return
            elif plan.failed_release == "nothing":
                over = over or self._kind == "not-held"
                if not over:
                    held.goes_on()
                if not world.chance(0.5):
                    return
            else:
                return
            yield world.now + world.between(1, plan.rest / MS)

    def _read(self, grant: Grant, resource: str) -> Steps:
        value = {"resource": resource} | self._named(grant)
        sent = self._invoke("read", value)
        answer = yield from self._tried("read", value, self._ask(self.sim.store.read, resource))
        if answer is None:
            return None
        content, version = answer
        done = self._event("ok", "read", value | {"value": content, "version": version})
        self.open_ops.pop()
        self.sim.truth.read(resource, content, version, sent, done, self.node)
        return version

    def _write(self, grant: Grant, resource: str, version: int) -> Steps:
        content = f"{self.node}.{self.process}.{next(self._values)}"
        value = {"resource": resource, "version": version, "value": content, "token": grant.token}
        value |= self._named(grant)
        truth, held = self.sim.truth, self._holds[grant.owner]
        yield from self.reach("before-write")
        sent = self._invoke("write", value)
        write = self._stored(resource, content, version, grant, held.order)
        stored = yield from self._tried("write", value, write)
        if stored is None:
            truth.refused(resource, content)
            return False
        done = self._event("ok", "write", value | {"stored": stored})
        self.open_ops.pop()
        truth.wrote(resource, content, stored, sent, done, held)
        return True

    def _stored(self, resource: str, content: str, version: int, grant: Grant, order: int) -> Steps:
        store = self.sim.store
        given = (resource, content, version, grant.token, grant.lock, order)
        accepted, number = yield from self._ask(store.write, *given)
        if not accepted:
            raise Refused("refused", f"the guard has seen {number}")
        return number

    def _ask(self, act: Callable[..., Any], *given: Any) -> Steps:
        until = self.sim.world.now + self.sim.plan.storage_timeout
        answer = yield from self._line.ask(STORAGE, until, act, *given)
        if answer is None:
            raise Unknown("timeout")
        return answer

    def _invoke(self, f: str, value: dict[str, Any]) -> int:
        self.open_ops.append((self.process, f))
        return self._event("invoke", f, value)

    def _tried(self, f: str, value: dict[str, Any], verb: Steps, done: Any = None) -> Steps:
        """Return the verb's answer, or `done`; None if it was refused, which it records.

        Raises:
            Gone: the outcome is unknown, which it records as well.
        """
        yield from self.reach("begun")
        try:
            found = yield from verb
        except Unknown as error:
            if f != "read":
                self._event("info", f, value, error)
                self.open_ops.pop()
                self.announced = self.process + self.sim.plan.clients
                raise Gone from None
            refused: Refused = error
        except Refused as error:
            refused = error
        else:
            yield from self.reach("answered")
            return done if found is None else found
        self._kind = refused.kind
        self._event("fail", f, value, refused)
        self.open_ops.pop()
        return None

    def _succeed(self) -> Steps:
        """Close, and continue as the next process, which keeps nothing of this one."""
        yield from self._close()
        self.process = self.announced
        self._begin()

    def _close(self) -> Steps:
        silent = self.sim.plan.silent_close
        for held in self._holds.values():
            held.ended(self._last if silent else self.stamp(), "close")
        if silent:
            with suppress(Refused):
                yield from self._lock.close()
            return
        self._invoke("close", {})
        try:
            yield from self._lock.close()
            self._event("ok", "close", {})
        except Refused as error:
            self._event("info", "close", {}, error)
        self.open_ops.pop()
