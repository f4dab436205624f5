"""Simulates the servers of an ensemble, or a single one: their leader, and how others learn.

Each change is made by the leader, in one order, and needs a majority. It is made at once, if the
leader and a majority are up and none of them is paused; until then it waits. The other servers
learn of it a little later, so a read from one may be stale. A server that does not lead answers a
change after it has learned of it, and of all before it. A server that was paused answers first, and
learns then.

Not modelled: links between servers are never cut, and their messages are never lost.

Sessions: the leader expires them. It hears every half a tick from each follower which clients that
one has heard (LearnerHandler, Leader.PING).

Containers: the leader looks for those without children, from time to time, and deletes them, each
by a change of its own (ContainerManager).

Elections: the leader is gone once it is down, or paused for longer than `syncLimit`. The servers
close all connections, and refuse new ones until one of them leads. The new leader gives each
session its whole timeout. A server that restarts keeps its data and the sessions: every answered
change is on disk.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fencepost.hunt.models.zookeeper.sessions import USUAL, Sessions, Timing
from fencepost.hunt.models.zookeeper.tree import Tree
from fencepost.hunt.models.zookeeper.watches import Watches
from fencepost.hunt.sim.network import LATENCY, Network, Server
from fencepost.hunt.sim.world import MS, Timer

_SYNC_LIMIT = 10
"""In ticks. An election takes one."""
_LAG = 2 * LATENCY
_EPOCH = 1 << 32
_PHASE = 130 * MS
_FIRST_SESSION = 0x1_0000_0000_0000


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What all servers learn in the same order.

    `apply` changes the znodes. `over`: the session that has ended, 0 for none. `by`: the server
    whose client has asked for it, which calls `then` as soon as it has learned.
    """

    zxid: int
    apply: Callable[[Tree], object] | None = None
    over: int = 0
    by: Member | None = None
    then: Callable[[], None] | None = None


class Member(Server):
    """A server of the ensemble: the znodes as it knows them, up to the change `zxid`, and the
    watches on them. `behind`: the changes that it has not learned."""

    __slots__ = ("behind", "tree", "watches", "zxid")

    def __init__(self, name: str, index: int) -> None:
        super().__init__(name, index)
        self.tree = Tree()
        self.watches = Watches()
        self.zxid = 0
        self.behind: list[Change] = []

    def learn(self, change: Change) -> None:
        self.zxid = max(self.zxid, change.zxid)
        if change.apply is not None:
            self.tree.begin()
            change.apply(self.tree)
            self.watches.fire(self.tree.events)
        self.learned(change)

    def learned(self, change: Change) -> None:
        """Tell the clients of a change."""
        if change.over:
            self.close(change.over)
        if change.by is self and change.then is not None:
            change.then()

    @abstractmethod
    def proceed(self) -> None:
        """Execute the requests that waited for a leader or a majority."""

    @abstractmethod
    def close(self, session: int) -> None:
        """Close the connection of a session, if it is here."""

    @abstractmethod
    def hang_up(self) -> None:
        """Close all connections."""


class Ensemble:
    """`timing`: of its servers. `zxid`: of the last change. `touched`: the clients that each
    follower has heard since it last reported to the leader."""

    def __init__(self, network: Network, timing: Timing = USUAL) -> None:
        self.network = network
        self.world = network.world
        self.timing = timing
        self.sessions = Sessions(_PHASE, timing.tick)
        self.servers: list[Member] = []
        self.zxid = 0
        self._leader: int | None = None
        self._last_session = _FIRST_SESSION
        self._touched: list[dict[int, int]] = []
        self._look: Timer | None = None
        # The next look for containers, and since when its times are counted.
        self._sweep: Timer | None = None
        self._leads_since = 0
        self._paused_since: int | None = None

    def add(self, server: Member) -> None:
        self.servers.append(server)
        self._touched.append({})
        if len(self.servers) == 2:
            self.world.at(self.timing.tick // 2, Timer(self.world.nowhere, self._ping))
        if self._leader is None:
            self._leader = 0

    # Who leads.

    def _there(self, server: Member) -> bool:
        return server.up and server.paused_until <= self.world.now

    @property
    def leader(self) -> Member | None:
        return None if self._leader is None else self.servers[self._leader]

    @property
    def commits(self) -> bool:
        """Whether a change can be made now."""
        if self.leader is None or not self._there(self.leader):
            return False
        there = sum(map(self._there, self.servers))
        return 2 * there > len(self.servers)

    def crashed(self, server: Member) -> None:
        """Note that a server is down."""
        self._touched[server.index].clear()
        up = sum(one.up for one in self.servers)
        if server is self.leader or 2 * up <= len(self.servers):
            self._lose_leader()

    def started(self, server: Member) -> None:
        if self._leader is None:
            self._elect_later(0 if len(self.servers) == 1 else self.timing.tick)
        else:
            self._catch_up(server)

    def _lose_leader(self) -> None:
        """Close all connections, and elect another leader if there is a majority."""
        if self._leader is None:
            return
        self._leader, self._paused_since = None, None
        if self._sweep is not None:
            self._sweep.off, self._sweep = True, None
        for server in self.servers:
            self._touched[server.index].clear()
            if server.up:
                latency = self.network.latency(0, server.index)
                self.world.at(self.world.now + latency, Timer(server, server.hang_up))
        if len(self.servers) > 1:
            self._elect_later(self.timing.tick)

    def _elect_later(self, after_ns: int) -> None:
        self.world.at(self.world.now + after_ns, Timer(self.world.nowhere, self._elect))

    def _elect(self) -> None:
        there = [server for server in self.servers if self._there(server)]
        if self._leader is not None:
            return
        if 2 * len(there) <= len(self.servers):
            if any(server.up and not self._there(server) for server in self.servers):
                self._elect_later(self.timing.tick)  # a paused server may vote later
            return
        leader = there[-1]
        self._learn_all(leader)
        self._leader, self._leads_since = leader.index, self.world.now
        if len(self.servers) > 1:
            self.zxid = leader.zxid = (self.zxid // _EPOCH + 1) * _EPOCH
        for server in self.servers:
            if server is not leader and server.up:
                self._catch_up(server)
        self.sessions.restart(self.world.now)
        self._look_later()
        self._sweep_later()

    def _ping(self) -> None:
        """Let the leader ask its followers, every half a tick; replace one that was paused for too
        long. A paused follower answers as soon as it continues."""
        world, leader = self.world, self.leader
        if leader is not None and self._there(leader):
            self._paused_since = None
            for server in self.servers:
                if server.up:
                    world.at(world.now, Timer(server, partial(self._report, server, server.boots)))
            self.proceed()
        elif leader is not None:
            self._paused_since = self._paused_since or world.now
            if world.now - self._paused_since >= _SYNC_LIMIT * self.timing.tick:
                self._lose_leader()
        world.at(world.now + self.timing.tick // 2, Timer(world.nowhere, self._ping))

    def _report(self, server: Member, boots: int) -> None:
        """Tell the leader which clients a follower has heard."""
        heard = self._touched[server.index]
        if self.leader is None or server.boots != boots or not heard:
            return
        sessions = dict(heard)
        heard.clear()

        def arrives() -> None:
            for session, timeout_ms in sessions.items():
                self.sessions.touch(session, timeout_ms, self.world.now)
            self._look_later()

        self.world.at(self.world.now, Timer(self.leader, arrives))

    def proceed(self) -> None:
        """Execute the requests that waited for a majority."""
        if self.commits:
            for server in self.servers:
                if self._there(server):
                    server.proceed()

    # How servers learn.

    def made(self, change: Change) -> None:
        """Let all servers learn of a change that the leader has made on its own znodes."""
        leader = self.leader
        assert leader is not None, "without a leader there are no changes"
        for server in self.servers:
            if server is not leader:
                server.behind.append(change)
                if server.up:
                    self._teach_at(server, self.world.now + _LAG)
        leader.zxid = max(leader.zxid, change.zxid)
        leader.watches.fire(leader.tree.events)
        leader.tree.begin()
        leader.learned(change)
        self._sweep_later()

    def _teach_at(self, server: Member, time: int) -> None:
        teach = partial(self._teach, server, server.boots)
        self.world.at(time, Timer(self.world.nowhere, teach))

    def _teach(self, server: Member, boots: int) -> None:
        """Let a server learn its next change; one that is paused learns after its pause."""
        if server.boots != boots or not server.up or not server.behind:
            return
        if server.paused_until > self.world.now:
            self._teach_at(server, server.paused_until + _LAG)
        else:
            server.learn(server.behind.pop(0))

    def _catch_up(self, server: Member) -> None:
        """Let a server that has begun to follow learn all."""

        def learns() -> None:
            if self.leader is not None and server.up:
                self._learn_all(server)
                server.zxid = self.zxid

        self.world.at(self.world.now, Timer(server, learns))

    def _learn_all(self, server: Member) -> None:
        while server.behind:
            server.learn(server.behind.pop(0))

    # Containers.

    def _sweep_later(self) -> None:
        """Look for containers to delete at the next time for that, if there are any."""
        leader = self.leader
        if leader is None or self._sweep is not None or not leader.tree.containers:
            return
        passed = (self.world.now - self._leads_since) % self.timing.sweep
        self._sweep = Timer(leader, self._delete_containers)
        self.world.at(self.world.now + self.timing.sweep - passed, self._sweep)

    def _delete_containers(self) -> None:
        self._sweep, leader = None, self.leader
        if leader is not None and not self.commits:
            self._sweep = Timer(leader, self._delete_containers)
            self.world.at(self.world.now + self.timing.tick, self._sweep)
        elif leader is not None:
            for path in leader.tree.abandoned():
                self.zxid += 1
                leader.tree.begin()
                leader.tree.sweep(path, self.zxid)
                self.made(Change(self.zxid, partial(_sweep, path, self.zxid)))
            self._sweep_later()

    # Sessions.

    def new_session(self, timeout_ms: int, owner: int) -> int:
        self._last_session += 1
        self.sessions.add(self._last_session, timeout_ms, owner, self.world.now)
        self._look_later()
        return self._last_session

    def take_over(self, session: int, timeout_ms: int, owner: int) -> bool:
        """Move a session to another server, unless it has expired."""
        if not self.sessions.touch(session, timeout_ms, self.world.now):
            return False
        self.sessions.all[session].owner = owner
        return True

    def touch(self, session: int, timeout_ms: int, server: int) -> bool:
        """Note that a server heard a client; return whether that has a session, as far as the
        server knows."""
        if server == self._leader:
            return self.sessions.touch(session, timeout_ms, self.world.now)
        self._touched[server][session] = timeout_ms
        return True

    def _look_later(self) -> None:
        """Look for expired sessions when the next one expires."""
        due = self.sessions.next()
        if self.leader is None or due is None:
            return
        if self._look is not None:
            self._look.off = True
        self._look = Timer(self.leader, self._expire)
        self.world.at(max(due, self.world.now), self._look)

    def _expire(self) -> None:
        self._look = None
        if self.commits:
            for session in self.sessions.due(self.world.now):
                self.end(session)
            self._look_later()
        elif self.leader is not None:
            # A change, as any other: it needs a majority.
            self._look = Timer(self.leader, self._expire)
            self.world.at(self.world.now + self.timing.tick, self._look)

    def end(
        self, session: int, by: Member | None = None, then: Callable[[], None] | None = None
    ) -> None:
        """End a session, and delete its ephemeral znodes."""
        leader = self.leader
        assert leader is not None, "without a leader no session ends"
        self.zxid += 1
        self.sessions.all.pop(session, None)
        leader.tree.begin()
        leader.tree.end(session, self.zxid)
        self.made(Change(self.zxid, partial(_end, session, self.zxid), session, by, then))

    def forget(self) -> None:
        for server in self.servers:
            server.behind.clear()
        self.servers.clear()
        self._look = self._sweep = None


def _end(session: int, zxid: int, tree: Tree) -> None:
    tree.end(session, zxid)


def _sweep(path: str, zxid: int, tree: Tree) -> None:
    tree.sweep(path, zxid)
