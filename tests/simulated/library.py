"""A client's lock library: requests and replies, leases and sessions that it renews.

It follows the adapters in workloads/locks, in timing and unknown outcomes: a deadline is the time
of sending plus the ttl, never the time of the answer; an op that certainly did not happen is
`Refused`, one that may have happened is `Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.simulated.cluster import Cluster
from tests.simulated.network import Network
from tests.simulated.plan import Plan
from tests.simulated.service import Owner, Service
from tests.simulated.world import MS, Process, Steps, Thread, World

RESEND = 200 * MS
"""The time after which a library with sessions asks again."""

_NOT_UP = object()


class Refused(Exception):
    """It certainly did not happen. `kind` and `text` as in a history's error."""

    def __init__(self, kind: str, text: str = "-") -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Unknown(Refused):
    """It may have happened, or may happen yet."""


@dataclass
class Grant:
    """`deadline` by the client's clock; None if the library shows none."""

    lock: str
    owner: Owner
    token: int | None
    deadline: int | None
    wakeups: int | None = None


class Line:
    """The messages of one operating-system process."""

    def __init__(self, world: World, network: Network, cluster: Cluster, process: Process) -> None:
        self._world = world
        self._network = network
        self._cluster = cluster
        self._process = process
        self._mail: dict[Any, Any] = {}
        self._waiting: dict[Any, Thread] = {}
        self._names = count()

    def ask(self, to: str, until: int, act: Callable[..., Any], *given: Any) -> Steps:
        """Send a request once; return the reply, or None after the timeout.

        Raises:
            Refused: it certainly did not arrive.
        """
        name = next(self._names)
        if not self._network.send(self._process.node, to, self._arrive, to, name, act, given):
            raise Refused("unreachable", f"{to} rejects")
        reply = yield from self.wait(name, until)
        if reply is _NOT_UP:
            raise Refused("unreachable", f"{to} is down")
        return reply

    def wait(self, name: Any, until: int) -> Steps:
        """Return the reply with this name.

        A reply that arrived while its reader was paused beyond its timeout may be read or not.
        """
        while True:
            late = self._world.now >= until
            if name in self._mail and not (late and self._world.chance(0.5)):
                return self._mail.pop(name)
            if late:
                return None
            assert self._process.running is not None
            self._waiting[name] = self._process.running
            yield until

    def deliver(self, name: Any, reply: Any) -> None:
        self._mail[name] = reply
        thread = self._waiting.pop(name, None)
        if thread is not None:
            self._process.poke(thread)

    def _arrive(self, to: str, name: Any, act: Callable[..., Any], given: tuple[Any, ...]) -> None:
        if to not in self._cluster.servers:
            self._serve(to, name, act, given)
        elif self._cluster.servers[to].up:
            self._cluster.take(to, self._serve, to, name, act, given)
        elif self._world.chance(0.5):
            self._network.send(to, self._process.node, self.deliver, name, _NOT_UP)

    def _serve(self, to: str, name: Any, act: Callable[..., Any], given: tuple[Any, ...]) -> None:
        self._network.send(to, self._process.node, self.deliver, name, act(*given))


@dataclass(frozen=True)
class Host:
    """The arguments of a library: the world, and a way to report events of its own."""

    world: World
    network: Network
    cluster: Cluster
    service: Service
    plan: Plan
    process: Process
    line: Line
    stamp: Callable[[], int]
    reach: Callable[[str], Steps]
    renewed: Callable[[Grant], None]
    lost: Callable[[Grant, str], None]
    expired: Callable[[str], None]


class Keepalive:
    """Renews a lease three times a ttl; if it runs in a thread of its own, it checks the clock.

    `renew` returns the new deadline, False if the service reports an ended lease, None for silence.
    """

    def __init__(
        self,
        host: Host,
        ttl: int,
        deadline: int,
        renew: Callable[[], Steps],
        renewed: Callable[[int], None],
        lost: Callable[[bool], None],
    ) -> None:
        self._host = host
        self._ttl = ttl
        self._renew = renew
        self._renewed = renewed
        self._lost = lost
        self.deadline = deadline
        self.over = False
        host.process.start(self._renew_all())
        if host.plan.watches:
            host.process.start(self._watch())

    def _renew_all(self) -> Steps:
        while not self.over:
            yield self._host.world.now + self._ttl // 3
            if self.over:
                return
            deadline = yield from self._renew()
            if self.over:
                return
            if deadline is False:
                self._lose(True)
            elif deadline is not None:
                self.deadline = max(self.deadline, deadline)
                self._renewed(self.deadline)

    def _watch(self) -> Steps:
        while not self.over:
            left = self.deadline - self._host.stamp()
            yield self._host.world.now + max(0, left) + self._host.world.between(0.1, 20)
            if not self.over and self._host.stamp() >= self.deadline:
                self._lose(False)

    def _lose(self, said: bool) -> None:
        self.over = True
        self._lost(said)


class LeaseLock:
    """Each hold has a lease of its own, as with Redis. A request is sent once."""

    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._name = name
        self._count = count(1)
        self._server = host.world.random.randrange(len(host.cluster.names))
        self._dogs: dict[Owner, Keepalive] = {}

    def acquire(self, lock: str, ttl: int, shared: bool) -> Steps:
        host, plan = self._host, self._host.plan
        until = host.world.now + plan.wait
        owner = (self._name, next(self._count))
        while True:
            sent = host.stamp()
            answer = yield from self._ask(host.service.take, host.process, lock, owner, shared, ttl)
            if answer is None:
                raise Unknown("timeout")
            if answer[0] == "granted":
                yield from host.reach("granted")
                grant = Grant(lock, owner, answer[1], sent + ttl)
                return (yield from self._granted(grant, ttl))
            yield host.world.now + host.world.between(40, 200)
            if host.world.now >= until:
                raise Refused("not-granted", "held by another")

    def _granted(self, grant: Grant, ttl: int) -> Steps:
        """A careful client releases an expired grant at once, as Redlock does."""
        host = self._host
        assert grant.deadline is not None
        if host.plan.careful and host.stamp() >= grant.deadline:
            yield from self._ask(host.service.drop, grant.lock, grant.owner)
            raise Refused("not-granted", "too late")
        if host.plan.watchdog:
            self._watch(grant, ttl)
        return grant

    def _watch(self, grant: Grant, ttl: int) -> None:
        host = self._host
        assert grant.deadline is not None

        def renewed(deadline: int) -> None:
            grant.deadline = deadline
            host.renewed(grant)

        self._dogs[grant.owner] = Keepalive(
            host,
            ttl,
            grant.deadline,
            lambda: self._longer(grant, ttl),
            renewed,
            lambda said: host.lost(grant, "the service says so" if said else "not renewed in time"),
        )

    def _longer(self, grant: Grant, ttl: int) -> Steps:
        sent = self._host.stamp()
        try:
            answer = yield from self._ask(self._host.service.extend, grant.lock, grant.owner, ttl)
        except Refused:
            return None
        return sent + ttl if answer else answer

    def extend(self, grant: Grant, ttl: int) -> Steps:
        sent = self._host.stamp()
        answer = yield from self._ask(self._host.service.extend, grant.lock, grant.owner, ttl)
        if answer is None:
            raise Unknown("timeout")
        if not answer:
            raise Refused("not-held")
        grant.deadline = sent + ttl

    def release(self, grant: Grant) -> Steps:
        dog = self._dogs.pop(grant.owner, None)
        if dog is not None:
            dog.over = True
        answer = yield from self._ask(self._host.service.drop, grant.lock, grant.owner)
        if answer is None:
            raise Unknown("timeout")
        if not answer and not self._host.plan.polite:
            raise Refused("not-held")

    def stop(self) -> None:
        for dog in self._dogs.values():
            dog.over = True

    def close(self) -> Steps:
        self.stop()
        yield self._host.world.now + self._host.world.between(0, 1)

    def _ask(self, act: Callable[..., Any], *given: Any) -> Steps:
        """Send one request to one server; the next request goes to another after a timeout."""
        host = self._host
        names = host.cluster.names
        until = host.world.now + host.plan.timeout
        yield from host.reach("before-request")
        try:
            answer = yield from host.line.ask(names[self._server], until, act, *given)
        except Refused:
            self._server = (self._server + 1) % len(names)
            raise
        if answer is None:
            self._server = (self._server + 1) % len(names)
        yield from host.reach("replies-in-flight")
        return answer
