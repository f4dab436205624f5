"""Simulates an etcd cluster: servers that share one state while a majority of them is up.

Not modelled: links between servers are never cut (a server may be paused or down instead), requests
do not overlap, and a follower answers as fast as the leader. Without a leader, requests wait for
one, as long as etcd lets them (5 s and two elections).

Leases run on the leader's monotonic clock, which is correct. The leader checks them twice a second,
so a lease lasts up to half a second longer than its TTL (lessor.go); a new leader renews all of
them. Servers lose no data: etcd syncs each write before its answer.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any

import msgspec

from fencepost.hunt.models.etcd import gateway
from fencepost.hunt.models.etcd.queue import Queue
from fencepost.hunt.models.etcd.requests import Body, Range, Txn, parse
from fencepost.hunt.models.etcd.session import Session
from fencepost.hunt.models.etcd.state import Refused, State
from fencepost.hunt.models.etcd.watches import AllWatches, Watches
from fencepost.hunt.sim.link import SimLink
from fencepost.hunt.sim.network import LATER, Network, Request, Server, Wire
from fencepost.hunt.sim.world import MS, Timer

LOOK = 500 * MS
_ELECTION = 1000 * MS
_PATIENCE = 7000 * MS

_LOCK = "lock/lock"
_WAITS = ("watch", _LOCK)
# Unknown, not found; 3.4 has another one for a failed precondition.
_STATUS = {2: 500, 5: 404}
_STATUS_OF_OLD = {**_STATUS, 9: 412}

Answer = tuple[int, bytes]


class Cluster:
    """The state, the leader, and the waiting requests. `looks`: see queue.py; 3.4 does not."""

    def __init__(self, network: Network, looks: bool = True) -> None:
        self.network = network
        self.world = network.world
        self.state = State()
        self.queue = Queue(self.state, looks)
        self.watches = AllWatches(self.state, self.world)
        self._looks = looks
        self.servers: list[EtcdServer] = []
        self._leader = 0
        self._lost: int | None = None
        self._watching: list[tuple[EtcdServer, Request, bytes]] = []
        self._parked: list[tuple[EtcdServer, Request]] = []
        self.world.at(LOOK, Timer(self.world.nowhere, self._look))

    def _there(self, server: EtcdServer) -> bool:
        return server.up and server.paused_until <= self.world.now

    def leads(self) -> bool:
        """Return whether a leader with a majority exists; elect one if the last has been gone long
        enough."""
        now = self.world.now
        if self._lost is None:
            for server in self.servers:
                if not server.up or server.paused_until > now:
                    break
            else:
                return True
        there = [server for server in self.servers if self._there(server)]
        if len(there) <= len(self.servers) // 2:
            self._lost = now if self._lost is None else self._lost
            return False
        if self._there(self.servers[self._leader]) and self._lost is None:
            return True
        if self._lost is None:
            self._lost = now
        if now - self._lost < _ELECTION:
            return False
        self._lost = None
        if not self._there(self.servers[self._leader]):
            self._leader = there[0].index
        self.state.promoted(now)
        self._answer_parked()
        return True

    def answer(self, path: str, text: bytes) -> Answer:
        """Execute a request, and notify watchers."""
        try:
            answer = self.state.execute(path, _parse(path, text), self.world.now)
        except Refused as error:
            return self.refused(error)
        finally:
            if self.state.deleted:
                self._notify()
            elif self.state.events is not None:
                self.watches.notify()
        return 200, msgspec.json.encode(answer)

    def version(self) -> Answer:
        number = "3.5.16" if self._looks else "3.4.23"
        return 200, msgspec.json.encode({"etcdserver": number, "etcdcluster": f"{number[:3]}.0"})

    def refused(self, error: Refused) -> Answer:
        """Return the gateway's answer: its status is that of gRPC's code (grpc-gateway)."""
        words = {"code": error.code, "message": str(error)}
        statuses = _STATUS if self._looks else _STATUS_OF_OLD
        if not self._looks:
            words["error"] = str(error)
        return statuses.get(error.code, 400), msgspec.json.encode(words)

    def lock(self, server: EtcdServer, request: Request) -> None:
        """Answer a request to the lock service, now or when its turn has come."""
        try:
            self.queue.enter(server, request, _body(request.asked[1]))
        except Refused as error:
            request.give(self.refused(error))
        else:
            self._grant()

    def _grant(self) -> None:
        """Answer the requests to the lock service whose turn has come."""
        for waiter in self.queue.due():
            if waiter.server.paused_until > self.world.now:
                continue
            try:
                answer = 200, msgspec.json.encode(self.queue.answer(waiter))
            except Refused as error:
                answer = self.refused(error)
            waiter.request.give(answer)

    def left(self, link: Wire) -> None:
        """Note that a client has closed a connection."""
        if self.queue.left(link):
            world = self.world
            world.at(world.now + link.latency, Timer(link.server, self._sweep))

    def _sweep(self) -> None:
        self.queue.sweep(self.network.requests_cut)
        if self.state.deleted:
            self._notify()

    def watch(self, server: EtcdServer, request: Request, key: bytes) -> None:
        self._watching.append((server, request, key))

    def park(self, server: EtcdServer, request: Request) -> None:
        self._parked.append((server, request))

    def gone(self, server: EtcdServer) -> None:
        """Drop the requests that waited at a server, which is down."""
        self._watching = [one for one in self._watching if one[0] is not server]
        self._parked = [one for one in self._parked if one[0] is not server]
        self.queue.crashed(server)
        self.watches.gone(server)
        self.leads()

    def _notify(self) -> None:
        """Notify the watchers of deleted keys."""
        gone, self.state.deleted = set(self.state.deleted), []
        if self.state.events is not None:
            self.watches.notify()
        if gone:
            notified = [one for one in self._watching if one[2] in gone and self._there(one[0])]
            self._watching = [one for one in self._watching if one not in notified]
            event = {"result": {"events": [{"type": "DELETE"}]}}
            for _, request, _ in notified:
                request.give((200, msgspec.json.encode(event) + b"\n"))
            self._grant()

    def _look(self) -> None:
        """Do the leader's periodic work, twice a second."""
        world = self.world
        if self.leads():
            over = [n for n, lease in self.state.leases.items() if world.now >= lease.until]
            for number in over:
                self.state.revoke(number)
            self.queue.sweep(self.network.requests_cut)
            self._notify()
            self._grant()
            self._answer_parked()
        world.at(world.now + LOOK, Timer(world.nowhere, self._look))

    def _answer_parked(self) -> None:
        """Answer the requests that waited for a leader, before later ones."""
        parked, self._parked = self._parked, []
        now = self.world.now
        for server, request in parked:
            if _gone(request) or now - request.sent >= _PATIENCE or not self._there(server):
                continue
            if request.asked[0] == _LOCK:
                self.lock(server, request)
            else:
                request.give(server.execute(request.asked))


class EtcdServer(Server):
    """One server. A command is a path of the gateway and the body of its request, as JSON."""

    __slots__ = ("_cluster",)

    port = gateway.PORT

    def __init__(self, name: str, index: int, cluster: Cluster) -> None:
        super().__init__(name, index)
        self._cluster = cluster
        self.kept = True
        cluster.servers.append(self)

    @property
    def watches(self) -> Watches:
        """Return the watches of clients that speak gRPC. Kept, they would be a reference cycle."""
        return Watches(self._cluster.watches, self)

    def session(self) -> Session:
        return Session(self)

    def handle(self, command: tuple[Any, ...]) -> Any:
        if command[0] == gateway.VERSION:
            return self._cluster.version()
        if command[0] in _WAITS or not self._cluster.leads():
            return LATER
        return self.execute(command)

    def execute(self, command: tuple[Any, ...]) -> Answer:
        return self._cluster.answer(*command)

    def wait(self, request: Request) -> None:
        path, body = request.asked
        if path == "watch":
            self._cluster.watch(self, request, _watched(_body(body)))
        elif path == _LOCK and self._cluster.leads():
            self._cluster.lock(self, request)
        else:
            self._cluster.park(self, request)

    def left(self, link: Wire) -> None:
        session = getattr(link, "session", None)
        if isinstance(session, Session):
            session.left()
        self._cluster.left(link)

    def crash(self, power: bool) -> None:
        self.up = False
        self.boots += 1
        self._cluster.gone(self)
        self._cluster.network.broken(self)

    def start(self) -> None:
        self.up = True
        self.paused_until = 0

    def forget(self) -> None:
        self._cluster.servers.clear()


def _gone(request: Request) -> bool:
    """Whether the client has given up, and so has closed the connection."""
    link = request.link
    if isinstance(link, SimLink):
        return link.request is not request
    return bool(getattr(link, "closed", False))


def _body(text: bytes) -> Body:
    found: Body = msgspec.json.decode(text)
    return found


@lru_cache(4096)
def _parse(path: str, text: bytes) -> Body | Range | Txn:
    """Decode a request; callers must not modify it, because it is cached for later runs."""
    return parse(path, _body(text))


def _watched(body: dict[str, Any]) -> bytes:
    return base64.b64decode(body["create_request"]["key"])
