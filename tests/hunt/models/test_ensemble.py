"""Servers of the model of ZooKeeper fail, elect a leader, and expire sessions."""

from __future__ import annotations

from random import Random

import pytest

from fencepost.hunt.models.zookeeper.ensemble import Ensemble
from fencepost.hunt.models.zookeeper.errors import NO_NODE
from fencepost.hunt.models.zookeeper.server import ZooKeeperServer
from fencepost.hunt.models.zookeeper.sessions import TICK, USUAL, password
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.world import MS, Timer, World

sides = pytest.importorskip("tests.hunt.models.zookeeper_sides")
dialogue = pytest.importorskip("tests.hunt.models.zookeeper_dialogue")
drawn = pytest.importorskip("tests.hunt.models.zookeeper_drawn")
jute = dialogue.jute


class Cluster:
    """Servers, and clients that connect to one of them."""

    def __init__(self, count: int) -> None:
        self.world = World()
        self.ensemble = Ensemble(Network(self.world, None))
        self.servers = [
            ZooKeeperServer(f"zookeeper-{n + 1}", n, self.ensemble) for n in range(count)
        ]

    def connect(self, server: int, timeout_ms: int = 2000, session: int = 0) -> Client:
        return Client(self, server, timeout_ms, session)

    def until(self, ms: int) -> None:
        """Run the events up to this time."""
        world = self.world
        world.over = False

        def stop() -> None:
            world.over = True

        world.at(ms * MS, Timer(world.nowhere, stop))
        world.run()


class Client:
    def __init__(
        self, cluster: Cluster, server: int, timeout_ms: int, session: int, zxid: int = 0
    ) -> None:
        self._cluster = cluster
        self.connection = cluster.servers[server].session()
        self.line = self.connection.line = sides.Line()
        secret = password(session) if session else bytes(16)
        hello = jute.Connect(0, zxid, timeout_ms, session, secret, False).serialize()
        self.send(bytes(hello))

    def send(self, record: bytes) -> None:
        for command in self.connection.commands(len(record).to_bytes(4, "big") + record):
            if self.line.open:
                self.connection.execute(self.connection.server, command)
        self._cluster.until(self._cluster.world.now // MS + 1)  # a follower learns by then

    def ask(self, request: object) -> bytes | None:
        """Return the answer; None: none yet."""
        self.line.said.clear()
        self.send(packed(request))
        return self.line.said[-1][4:] if self.line.said else None

    @property
    def session(self) -> int:
        return self.connection.session


def error(answer: bytes | None) -> int | None:
    return None if answer is None else jute.reply_header_struct.unpack_from(answer)[2]


EPHEMERAL = jute.Create("/e", b"", [dialogue.ANYONE], 1)
ASKED = jute.Exists("/e", True)


@pytest.mark.parametrize("server", [0, 1, 2])
def test_an_ephemeral_znode_goes_with_its_session_and_watches_fire(server: int) -> None:
    cluster = Cluster(3)
    cluster.until(1)
    holder, watcher = cluster.connect(server), cluster.connect(1, timeout_ms=10_000)
    assert error(holder.ask(EPHEMERAL)) == 0
    assert error(watcher.ask(ASKED)) == 0
    cluster.until(2000)
    assert holder.line.open and len(watcher.line.said) == 1
    cluster.until(2000 + 2 * TICK // MS)
    assert not holder.line.open
    notice = jute.Watch.deserialize(watcher.line.said[-1][20:], 0)[0]
    assert (notice.type, notice.path) == (2, "/e")
    assert error(watcher.ask(ASKED)) == -101


def test_a_follower_s_report_keeps_a_session_alive() -> None:
    cluster = Cluster(3)
    cluster.until(1)
    client = cluster.connect(2)
    for ms in range(500, 8000, 900):
        cluster.until(ms)
        assert error(client.ask(jute.Sync("/"))) == 0
    assert client.line.open


def test_the_crash_of_the_leader_closes_connections_and_sessions_survive() -> None:
    cluster = Cluster(3)
    cluster.until(1)
    client, session = cluster.connect(1), 0
    assert error(client.ask(EPHEMERAL)) == 0
    session, zxid = client.session, cluster.ensemble.zxid
    cluster.servers[0].crash(False)
    cluster.until(100)
    assert not client.line.open
    refused = cluster.connect(1, session=session)
    assert not refused.line.open and not refused.line.said
    cluster.until(1000)
    again = cluster.connect(2, session=session)
    assert again.session == session
    assert error(again.ask(ASKED)) == 0
    assert zxid < 1 << 32 <= cluster.ensemble.zxid


def test_without_a_majority_no_server_serves_and_one_that_returns_is_enough() -> None:
    cluster = Cluster(3)
    cluster.until(1)
    client = cluster.connect(0)
    session = client.session
    for server in cluster.servers[1:]:
        server.crash(False)
    cluster.until(100)
    assert not client.line.open and not cluster.connect(0).line.said
    cluster.servers[1].start()
    cluster.until(1500)
    assert cluster.connect(1, session=session).session == session


def test_a_change_waits_for_paused_servers_and_keeps_back_what_follows() -> None:
    cluster = Cluster(3)
    cluster.until(1)
    client = cluster.connect(0, timeout_ms=10_000)
    for server in cluster.servers[1:]:
        server.paused_until = 1000 * MS
    assert client.ask(EPHEMERAL) is None
    assert client.ask(ASKED) is None
    cluster.until(1600)
    assert [error(said[4:]) for said in client.line.said] == [0, 0]


def test_a_paused_leader_is_replaced_after_ten_ticks() -> None:
    cluster = Cluster(3)
    cluster.until(1)
    client = cluster.connect(1, timeout_ms=10_000)
    session = client.session
    cluster.servers[0].paused_until = 20_000 * MS
    cluster.until(4500)
    assert client.line.open
    cluster.until(7000)
    assert not client.line.open
    assert error(cluster.connect(1, 10_000, session).ask(EPHEMERAL)) == 0


def test_a_lone_server_keeps_znodes_and_sessions_when_it_restarts() -> None:
    cluster = Cluster(1)
    client = cluster.connect(0)
    session = client.session
    client.ask(EPHEMERAL)
    for power in (False, True):
        cluster.servers[0].crash(power)
        cluster.servers[0].start()
        cluster.until(cluster.world.now // MS + 10)
        client = cluster.connect(0, session=session)
        assert client.session == session
        assert error(client.ask(ASKED)) == 0
    cluster.until(5000)
    assert error(cluster.connect(0).ask(ASKED)) == -101


def test_a_server_closes_the_connection_of_a_session_that_has_moved() -> None:
    cluster = Cluster(3)
    cluster.until(1)
    first = cluster.connect(1, timeout_ms=10_000)
    second = cluster.connect(2, session=first.session, timeout_ms=10_000)
    # A follower answers reads and syncs itself.
    assert error(first.ask(ASKED)) == -101 and error(first.ask(jute.Sync("/"))) == 0
    assert first.ask(EPHEMERAL) is None and not first.line.open
    assert error(second.ask(EPHEMERAL)) == 0


def test_a_follower_learns_of_a_change_later_so_that_a_read_there_is_stale() -> None:
    cluster = Cluster(3)
    cluster.until(1)
    writer, reader = cluster.connect(0), cluster.connect(1)
    assert error(reader.ask(ASKED)) == -101
    cluster.servers[1].paused_until = cluster.world.now + 100 * MS
    assert error(writer.ask(EPHEMERAL)) == 0
    reader.line.said.clear()
    cluster.until((cluster.world.now + 90 * MS) // MS)
    assert reader.line.said == []  # a paused server says nothing
    cluster.servers[1].paused_until = 0
    assert cluster.servers[1].tree.nodes.get("/e") is None
    cluster.until((cluster.world.now + 100 * MS) // MS)
    notice = jute.Watch.deserialize(reader.line.said[0][20:], 0)[0]
    assert (notice.type, notice.path) == (1, "/e")
    assert error(reader.ask(ASKED)) == 0


def test_a_client_reads_its_own_writes_and_what_it_has_synced_at_a_follower() -> None:
    cluster = Cluster(3)
    cluster.until(1)
    leader, follower = cluster.connect(0), cluster.connect(2)
    for number in range(20):
        path = f"/own-{number}"
        made = jute.Create(path, b"", [dialogue.ANYONE], 0)
        both = (made, jute.Exists(path, False))
        follower.line.said.clear()
        for request in both:
            follower.send(packed(request))
        assert [error(said[4:]) for said in follower.line.said] == [0, 0]
        leader.send(packed(jute.SetData(path, b"new", 0)))
        follower.line.said.clear()
        for request in (jute.Sync("/"), jute.GetData(path, False)):
            follower.send(packed(request))
        assert jute.GetData.deserialize(follower.line.said[-1][4:], 16)[0] == b"new"


def test_a_server_refuses_a_client_that_has_seen_later_changes() -> None:
    cluster = Cluster(3)
    cluster.until(1)
    writer = cluster.connect(0)
    cluster.servers[1].paused_until = cluster.world.now + 100 * MS
    assert error(writer.ask(EPHEMERAL)) == 0
    cluster.servers[1].paused_until = 0
    late = Client(cluster, 1, 2000, writer.session, cluster.ensemble.zxid)
    assert not late.line.open and not late.line.said


def test_all_servers_have_the_same_znodes_after_any_dialogue_and_crashes() -> None:
    random = Random(3)
    cluster = Cluster(3)
    cluster.until(1)
    steps = [one for seed in range(8) for one in dialogue.drawn(seed, 150) if one[0] == "request"]
    clients = [cluster.connect(server, 10_000) for server in range(3)]
    for number, step in enumerate(steps):
        client = clients[step[1]]
        if not client.line.open:
            clients[step[1]] = client = cluster.connect(step[1], 10_000)
        if client.line.open and client.line.said:
            client.send((number + 1).to_bytes(4, "big") + step[2].to_bytes(4, "big")
                        + bytes.fromhex(step[3]))  # fmt: skip
        if random.random() < 0.01:
            server = random.choice(cluster.servers)
            server.crash(False)
            cluster.until(cluster.world.now // MS + random.choice((1, 900)))
            server.start()
    cluster.until(cluster.world.now // MS + 2000)
    assert cluster.ensemble.leader is not None
    trees = [{path: node.stat for path, node in one.tree.nodes.items()} for one in cluster.servers]
    assert trees[0] == trees[1] == trees[2] and len(trees[0]) > 10
    assert len({server.zxid for server in cluster.servers}) == 1


def packed(request: object) -> bytes:
    type, record = dialogue.packed(request)
    return (7).to_bytes(4, "big") + type.to_bytes(4, "big") + bytes.fromhex(record)


def test_a_session_that_connects_again_to_its_server_loses_the_old_connection() -> None:
    cluster = Cluster(1)
    first = cluster.connect(0)
    second = cluster.connect(0, session=first.session)
    assert not first.line.open and second.line.open


def test_the_times_of_a_znode_are_those_of_the_leader_s_wall_clock() -> None:
    cluster = Cluster(1)
    client = cluster.connect(0)
    before = cluster.servers[0].clock.ms(cluster.world.now)
    cluster.servers[0].clock.jump(cluster.world.now, 3_600_000 * MS)
    answer = client.ask(jute.Create2("/t", b"", [dialogue.ANYONE], 0))
    assert answer is not None
    _, stat = jute.Create2.deserialize(answer, 16)
    assert stat.ctime == before + 3_600_000


def container(path: str) -> object:
    return drawn.Container(path, b"", [dialogue.ANYONE], drawn.CONTAINER)


def node(path: str) -> object:
    return jute.Create(path, b"", [dialogue.ANYONE], 0)


def are_there(client: Client, *paths: str) -> list[bool]:
    return [error(client.ask(jute.Exists(path, False))) == 0 for path in paths]


SWEEP_MS = USUAL.sweep // MS
PING = (-2).to_bytes(4, "big", signed=True) + (11).to_bytes(4, "big")


@pytest.mark.parametrize("count", [1, 3])
def test_containers_that_had_children_are_deleted_at_the_next_look_and_no_others(count):
    cluster = Cluster(count)
    client = cluster.connect(count - 1, 10_000)
    for path in ("/left", "/full", "/fresh"):
        assert error(client.ask(container(path))) == 0
    for path in ("/left/a", "/full/a"):
        assert error(client.ask(node(path))) == 0
    assert error(client.ask(jute.Delete("/left/a", -1))) == 0
    for at in range(1000, SWEEP_MS, 1000):
        assert are_there(client, "/left") == [True]
        cluster.until(at)
    cluster.until(SWEEP_MS + 2)
    assert are_there(client, "/left", "/full", "/fresh") == [False, True, True]
    assert error(client.ask(node("/left/b"))) == NO_NODE


def test_a_container_whose_child_comes_back_in_time_stays_until_it_is_empty_at_a_look():
    cluster = Cluster(1)
    client = cluster.connect(0, 10_000)
    for request in (container("/c"), node("/c/a"), jute.Delete("/c/a", -1), node("/c/a")):
        assert error(client.ask(request)) == 0
    for look in (1, 2, 3):
        for at in range((look - 1) * SWEEP_MS + 1000, look * SWEEP_MS, 1000):
            cluster.until(at)
            assert are_there(client, "/c") == [True]
        cluster.until(look * SWEEP_MS + 1)
        assert are_there(client, "/c") == [look < 3]
        if look == 2:
            assert error(client.ask(jute.Delete("/c/a", -1))) == 0


def test_watchers_hear_that_a_container_is_deleted():
    cluster = Cluster(3)
    client = cluster.connect(1, 10_000)
    for request in (container("/c"), node("/c/a"), jute.Delete("/c/a", -1)):
        client.ask(request)
    client.ask(jute.Exists("/c", True))
    client.line.said.clear()
    for at in range(1000, SWEEP_MS + 1001, 1000):
        cluster.until(at)
        client.send(PING)
    notices = [one[4:] for one in client.line.said if one[4:8] == b"\xff" * 4]
    assert [jute.Watch.deserialize(one[16:], 0)[0][::2] for one in notices] == [(2, "/c")]


def test_a_look_for_containers_waits_for_a_majority():
    cluster = Cluster(3)
    client = cluster.connect(2, 10_000)
    for request in (container("/c"), node("/c/a"), jute.Delete("/c/a", -1)):
        client.ask(request)
    cluster.until(SWEEP_MS - 100)
    for server in cluster.servers[:2]:
        server.paused_until = (SWEEP_MS + 900) * MS
    cluster.until(SWEEP_MS + 800)
    leader = cluster.ensemble.leader
    assert leader is not None and "/c" in leader.tree.nodes
    cluster.until(SWEEP_MS + 2000)
    assert "/c" not in cluster.ensemble.servers[0].tree.nodes
