"""Subscriptions, keyspace notifications and watched keys of the simulated Redis, over time."""

from __future__ import annotations

import pytest

from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import MS, World
from tests.hunt.models.redis_dialogue import Line
from tests.hunt.models.test_lists import until


class Connection:
    """A connection to the model."""

    def __init__(self, server):
        self.server, self.session = server, server.session()
        self.line = self.session.line = Line()

    def ask(self, *words):
        reply = self.session.execute(self.server, words)
        return str(reply) if isinstance(reply, Exception) else reply

    @property
    def heard(self):
        """The words of the messages that came without a request."""
        said, self.line.said = self.line.said, b""
        words = said.decode().split("\r\n")
        return [one for one in words if one and one[0] not in "*$>"]


@pytest.fixture
def server():
    return RedisServer("redis-1", 0, Network(World(), None), "none")


@pytest.fixture
def one(server):
    return Connection(server)


@pytest.fixture
def other(server):
    return Connection(server)


def test_clients_hear_of_a_key_that_expires_in_the_cycle_after_its_time(server, one, other):
    one.ask("CONFIG", "SET", "notify-keyspace-events", "Ex")
    one.ask("SUBSCRIBE", "__keyevent@0__:expired")
    other.ask("SET", "a", "1", "PX", "250")
    other.ask("SET", "b", "1", "PX", "10000")
    until(server, 299)
    assert one.heard == []
    until(server, 300)
    assert one.heard == ["message", "__keyevent@0__:expired", "a"]


def test_clients_hear_of_a_key_that_has_expired_when_it_is_looked_for(server, one, other):
    one.ask("CONFIG", "SET", "notify-keyspace-events", "Ex")
    one.ask("SUBSCRIBE", "__keyevent@0__:expired")
    other.ask("SET", "a", "1", "PX", "10")
    server.world.now = 11 * MS
    assert other.ask("GET", "a") is None
    assert one.heard == ["message", "__keyevent@0__:expired", "a"]


def test_a_clock_that_jumps_ahead_lets_keys_expire_in_the_next_cycle(server, one, other):
    one.ask("CONFIG", "SET", "notify-keyspace-events", "Ex")
    one.ask("SUBSCRIBE", "__keyevent@0__:expired")
    other.ask("SET", "a", "1", "EX", "100")
    server.settle()
    server.clock.jump(0, 101_000 * MS)
    until(server, 100)
    assert one.heard == ["message", "__keyevent@0__:expired", "a"]


def test_a_watched_key_that_expires_is_touched_and_one_that_had_expired_is_not(server, one, other):
    other.ask("SET", "a", "1", "PX", "10")
    one.ask("WATCH", "a")
    server.world.now = 11 * MS
    one.ask("MULTI")
    assert one.ask("EXEC") is None
    one.ask("WATCH", "a")  # it is still there, and has expired
    assert other.ask("GET", "a") is None
    one.ask("MULTI")
    assert one.ask("EXEC") == []


def test_a_key_that_had_expired_when_it_was_watched_is_touched_by_a_new_value(server, one, other):
    other.ask("SET", "a", "1", "PX", "10")
    server.world.now = 11 * MS
    one.ask("WATCH", "a")
    other.ask("SET", "a", "2")
    one.ask("MULTI")
    assert one.ask("EXEC") is None


def test_own_locks_touch_watched_keys_as_well(server, one):
    server.handle(("SET", "a", "x", "NX", "PX", 1000))
    one.ask("WATCH", "a")
    from fencepost.workloads.locks.redis import RELEASE

    assert server.handle(("EVAL", RELEASE, 1, "a", "x")) == 1
    one.ask("MULTI")
    assert one.ask("EXEC") is None


def test_a_crash_ends_subscriptions_watches_and_settings(server, one, other):
    one.ask("CONFIG", "SET", "notify-keyspace-events", "KEA")
    one.ask("SUBSCRIBE", "a")
    server.crash(power=False)
    server.start()
    assert other.ask("PUBLISH", "a", "1") == 0
    assert other.ask("CONFIG", "GET", "notify-keyspace-events") == {"notify-keyspace-events": ""}
    assert server.store.listener is None


def test_a_replica_touches_the_watched_keys_that_its_primary_has_changed():
    network = Network(World(), None)
    primary, replica = (RedisServer(f"redis-{n}", n, network, "none") for n in (1, 2))
    replica.follow(primary)
    watcher = Connection(replica)
    for key in ("a", "b"):
        watcher.ask("WATCH", key)
    Connection(primary).ask("SET", "b", "1")
    until(primary, 1)
    watcher.ask("MULTI")
    assert watcher.ask("EXEC") is None


def test_memory_that_runs_out_is_heard_of(server, one, other):
    one.ask("CONFIG", "SET", "notify-keyspace-events", "Ee")
    one.ask("SUBSCRIBE", "__keyevent@0__:evicted")
    other.ask("SET", "a", "1")
    server.run_out()
    assert one.heard == ["message", "__keyevent@0__:evicted", "a"]


def test_a_client_that_is_killed_by_another_is_hung_up_on(server, one, other):
    one.ask("CLIENT", "SETNAME", "mine")
    one.ask("SUBSCRIBE", "a")
    number = str(one.session.number)
    listed = other.ask("CLIENT", "LIST", "TYPE", "pubsub")
    assert f"id={number} " in listed and " name=mine " in listed and " sub=1 " in listed
    assert other.ask("CLIENT", "KILL", "ID", number) == 1
    assert not one.line.open
    assert other.ask("PUBLISH", "a", "1") == 0


def test_info_has_what_clients_read(server, one):
    one.ask("SET", "a", "1", "EX", "9")
    fields = dict(
        line.split(":", 1) for line in one.ask("INFO").split("\r\n") if line and line[0] != "#"
    )
    assert fields["redis_version"].startswith("7.0.")
    assert fields["role"] == "master"
    assert fields["db0"] == "keys=1,expires=1,avg_ttl=0"
    assert "redis_version" not in one.ask("INFO", "replication")


def test_a_transaction_that_sends_its_own_connection_a_message_is_refused(one):
    one.ask("HELLO", "3")
    one.ask("SUBSCRIBE", "a")
    one.ask("MULTI")
    one.ask("PUBLISH", "a", "1")
    with pytest.raises(Unknown, match="in the middle of its reply"):
        one.ask("EXEC")


def test_a_command_that_blocks_on_a_connection_with_subscriptions_is_refused(one):
    one.session.commands(b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n")
    one.ask("HELLO", "3")
    with pytest.raises(Unknown, match="blocks in BLPOP"):
        one.ask("BLPOP", "x", "1")
