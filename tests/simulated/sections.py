"""The ops of one process: it takes the lock, reads, writes and releases, and reports each op.

It also records the truth: its grants and their deadlines, its reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tests.simulated.events import Events, Sim
from tests.simulated.leases import LeaseLock
from tests.simulated.library import Grant, Host
from tests.simulated.line import Line, Refused, Unknown
from tests.simulated.redlock import QuorumLock
from tests.simulated.resource import STORAGE
from tests.simulated.sessions import SessionLock
from tests.simulated.state import Owner
from tests.simulated.truth import Held
from tests.simulated.world import MS, Steps

_RELEASES = 3  # tries of a release at most


class Gone(Exception):
    """Raised when the process has ended with an op of unknown outcome."""


class Sections:
    """`holds`: what this process was granted; `lock`: its library."""

    lock: LeaseLock | SessionLock | QuorumLock

    def __init__(self, sim: Sim, events: Events, line: Line, reach: Callable[[str], Steps]) -> None:
        self._sim = sim
        self._events = events
        self._line = line
        self._reach = reach
        self._process = events.process
        self.holds: dict[Owner, Held] = {}
        self._gone: dict[Owner, str] = {}
        self._waits_for = ""
        self._kind = ""  # of the last refusal
        self._numbers = count(1)

    def use(self, host: Host) -> None:
        """Open the library."""
        name = f"{self._events.node}.{self._process}"
        match self._sim.plan.way:
            case "lease":
                self.lock = LeaseLock(host, name)
            case "quorum":
                self.lock = QuorumLock(host, name)
            case _:
                self.lock = SessionLock(host, name)

    # Events that the library reports by itself.

    def renewed(self, grant: Grant) -> None:
        held = self.holds.get(grant.owner)
        if self._process == self._events.process and held is not None and self._sim.plan.visible:
            value = {"lock": grant.lock, "hold": held.name, "deadline": grant.deadline}
            held.told.append((self._events.write("info", "renewed", value), grant.deadline))

    def lost(self, grant: Grant, why: str) -> None:
        if self._process != self._events.process or grant.owner in self._gone:
            return
        self._gone[grant.owner] = why
        held = self.holds.get(grant.owner)
        if held is not None:
            self._say_lost(held, why)

    def _say_lost(self, held: Held, why: str) -> None:
        value = {"lock": held.lock, "hold": held.name}
        held.ended(self._events.write("info", "lost", value, Refused("lost", why)), "lost")

    def expired(self, why: str) -> None:
        if self._process == self._events.process and self._waits_for:
            value = {"lock": self._waits_for, "hold": None}
            self._events.write("info", "lost", value, Refused("expired", why))

    # Ops.

    def section(self) -> Steps:
        """Take a lock, work on its resource, and release it."""
        plan, world, random = self._sim.plan, self._sim.world, self._sim.world.random
        lock, resource = random.choice(plan.pairs)
        shared = world.chance(plan.shared)
        grant = yield from self._acquire(lock, shared)
        if grant is None:
            return
        if plan.reentrant and world.chance(0.4):
            yield from self._again(lock, shared)
        rounds = random.randrange(2, 6) if world.chance(plan.lingers) else 1
        for _ in range(rounds):
            yield world.now + world.between(0, plan.think / MS)
            if world.chance(plan.extends) and not (yield from self._extend(grant)):
                break
        else:
            yield from self._work(grant, resource, shared)
        yield from self._release(grant)

    def _again(self, lock: str, shared: bool) -> Steps:
        """Take the lock that this process has, for a moment."""
        inner = yield from self._acquire(lock, shared)
        if inner is not None:
            yield self._sim.world.now + self._sim.world.between(0, 50)
            yield from self._release(inner)

    def _work(self, grant: Grant, resource: str, shared: bool) -> Steps:
        world, plan = self._sim.world, self._sim.plan
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
        asked = self._events.invoke("acquire", value)
        grant = yield from self._tried("acquire", value, self.lock.acquire(lock, ttl, shared))
        self._waits_for = ""
        if grant is None:
            return None
        held = self._told(grant, value, asked)
        yield from self._reach("acquired")
        if grant.owner in self._gone:
            self._say_lost(held, self._gone[grant.owner])
        return grant

    def _ttl(self) -> int:
        plan = self._sim.plan
        return int(
            plan.ttl * self._sim.world.random.choice((0.5, 1, 1.5)) if plan.uneven else plan.ttl
        )

    def _told(self, grant: Grant, value: dict[str, Any], asked: int) -> Held:
        """Report that it was granted; from here on it is held."""
        plan, order = self._sim.plan, self._sim.service.order
        name = f"{self._process}-{next(self._numbers)}"
        answer: dict[str, Any] = {"token": grant.token, "deadline": self._shown(grant)}
        if not plan.nameless:
            answer["hold"] = name
        if grant.wakeups is not None:
            answer["wakeups"] = grant.wakeups
        if grant.granted_by:
            answer["granted_by"] = list(grant.granted_by)
        start = self._events.complete("ok", "acquire", value | answer)
        held = Held(
            lock=grant.lock,
            name=name,
            node=self._events.node,
            process=self._process,
            shared=value.get("mode") == "shared",
            token=grant.token,
            # A client that was granted nothing, and believes so, has no place of its own.
            order=order.setdefault(grant.owner, len(order) + 1),
            ttl=value["ttl"],
            asked=asked,
            start=start,
            began=self._sim.world.now,
            told=[(start, self._shown(grant))],
            error=self._events.error,
            again=grant.outer is not None,
        )
        self.holds[grant.owner] = held
        self._sim.truth.holds.append(held)
        return held

    def _shown(self, grant: Grant) -> int | None:
        return grant.deadline if self._sim.plan.visible else None

    def _named(self, grant: Grant) -> dict[str, Any]:
        held = self.holds[grant.owner]
        return {} if self._sim.plan.nameless else {"hold": held.name}

    def _extend(self, grant: Grant) -> Steps:
        held = self.holds[grant.owner]
        ttl = max(held.ttl, self._ttl())
        value = {"lock": grant.lock, "ttl": ttl} | self._named(grant)
        sent = self._events.invoke("extend", value)
        done = yield from self._tried("extend", value, self.lock.extend(grant, ttl), True)
        if done is None:
            return False
        shown = self._shown(grant)
        stamp = self._events.complete("ok", "extend", value | {"deadline": shown})
        held.told.append((stamp, shown))
        held.extended.append((sent, stamp))
        return True

    def _release(self, grant: Grant) -> Steps:
        plan, world = self._sim.plan, self._sim.world
        held = self.holds[grant.owner]
        yield from self._reach("before-release")
        over = False  # an answer said so
        for again in range(_RELEASES):
            value = {"lock": grant.lock} | self._named(grant)
            sent = self._events.invoke("release", value)
            held.ended(sent, "release")
            done = yield from self._tried("release", value, self.lock.release(grant), True)
            if done is not None:
                answered = self._events.complete("ok", "release", value)
                held.released.append((sent, answered))
                if again or not world.chance(plan.twice):
                    return
            elif plan.failed_release == "nothing":
                over = over or self._kind == "not-held"
                if not over:
                    held.goes_on()
                if not world.chance(0.5):
                    return
            elif self._kind != "unreachable" or not world.chance(0.5):
                return
            yield world.now + world.between(1, plan.rest / MS)
            if self._kind == "unreachable" and not over and again + 1 < _RELEASES:
                held.goes_on()  # it reached no server, and its holder tries again

    def _read(self, grant: Grant, resource: str) -> Steps:
        value = {"resource": resource} | self._named(grant)
        sent = self._events.invoke("read", value)
        answer = yield from self._tried("read", value, self._ask(self._sim.store.read, resource))
        if answer is None:
            return None
        content, version = answer
        done = self._events.complete("ok", "read", value | {"value": content, "version": version})
        self._sim.truth.read(resource, content, version, sent, done, self._events.node)
        return version

    def _write(self, grant: Grant, resource: str, version: int) -> Steps:
        content = f"{self._events.node}.{self._process}.{next(self._numbers)}"
        value = {"resource": resource, "version": version, "value": content, "token": grant.token}
        value |= self._named(grant)
        truth, held = self._sim.truth, self.holds[grant.owner]
        yield from self._reach("before-write")
        sent = self._events.invoke("write", value)
        write = self._stored(resource, content, version, grant, held.order)
        stored = yield from self._tried("write", value, write)
        if stored is None:
            truth.refused(resource, content)
            return False
        done = self._events.complete("ok", "write", value | {"stored": stored})
        truth.wrote(resource, content, stored, sent, done, held)
        return True

    def _stored(self, resource: str, content: str, version: int, grant: Grant, order: int) -> Steps:
        store = self._sim.store
        given = (resource, content, version, grant.token, grant.lock, order)
        accepted, number = yield from self._ask(store.write, *given)
        if not accepted:
            raise Refused("refused", f"the guard has seen {number}")
        return number

    def _ask(self, act: Callable[..., Any], *given: Any) -> Steps:
        until = self._sim.world.now + self._sim.plan.storage_timeout
        answer = yield from self._line.ask(STORAGE, until, act, *given)
        if answer is None:
            raise Unknown("timeout")
        return answer

    def _tried(self, f: str, value: dict[str, Any], verb: Steps, done: Any = None) -> Steps:
        """Return the verb's answer, or `done`; None if it was refused, which it records.

        Raises:
            Gone: the outcome is unknown, which it records as well.
        """
        yield from self._reach("begun")
        try:
            found = yield from verb
            yield from self._reach("answered")
            if not self._sim.world.chance(self._sim.plan.garbled):
                return done if found is None else found
            refused: Refused = Unknown("unreadable", "what it wrote is no event")
        except Refused as error:
            refused = error
        if isinstance(refused, Unknown) and f != "read":
            self._events.complete("info", f, value, refused)
            self._events.succeed()
            raise Gone
        self._kind = refused.kind
        self._events.complete("fail", f, value, refused)
        return None
