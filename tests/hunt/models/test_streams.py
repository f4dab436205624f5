"""Streams of the simulated Redis: what depends on its clock, on its replica, or on waiting."""

from __future__ import annotations

import pytest

from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.sim.network import Network, Refusal
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import MS, World


@pytest.fixture
def server():
    return RedisServer("redis-1", 0, Network(World(), None), "none")


def asked(server, command):
    reply = server.handle(tuple(command.split()))
    return str(reply) if isinstance(reply, Refusal) else reply


def test_ids_follow_the_server_s_clock_and_never_go_back(server):
    first = asked(server, "XADD s * f 1").partition("-")[0]
    server.world.now = 7 * MS
    assert asked(server, "XADD s * f 2") == f"{int(first) + 7}-0"
    server.clock.jump(server.world.now, -2 * 10**9)
    assert asked(server, "XADD s * f 3") == f"{int(first) + 7}-1"
    assert asked(server, "XADD s 5-1 f 4").startswith("ERR The ID specified in XADD is equal")


def test_an_entry_is_pending_until_it_is_acknowledged_and_may_be_claimed_when_idle(server):
    asked(server, "XGROUP CREATE s g 0 MKSTREAM")
    asked(server, "XADD s 1-0 f 1")
    assert asked(server, "XREADGROUP GROUP g a STREAMS s >") == [["s", [["1-0", ["f", "1"]]]]]
    assert asked(server, "XREADGROUP GROUP g b STREAMS s >") is None
    server.world.now = 300 * MS
    assert asked(server, "XPENDING s g IDLE 301 - + 9") == []
    assert asked(server, "XPENDING s g IDLE 300 - + 9") == [["1-0", "a", 300, 1]]
    assert asked(server, "XCLAIM s g b 301 1-0") == []
    assert asked(server, "XCLAIM s g b 300 1-0") == [["1-0", ["f", "1"]]]
    assert asked(server, "XPENDING s g - + 9") == [["1-0", "b", 0, 2]]
    assert asked(server, "XACK s g 1-0 2-0") == 1
    assert asked(server, "XPENDING s g")[0] == 0


def test_a_client_that_would_wait_for_an_entry_is_refused_with_a_sentence(server):
    asked(server, "XADD s 1-0 f 1")
    assert asked(server, "XREAD BLOCK 100 STREAMS s 0") == [["s", [["1-0", ["f", "1"]]]]]
    with pytest.raises(Unknown, match="has no XREAD that waits for an entry"):
        asked(server, "XREAD BLOCK 100 STREAMS s $")


def test_a_replica_has_streams_of_its_own():
    network = Network(World(), None)
    primary, replica = (RedisServer(f"redis-{n}", n, network, "none") for n in (1, 2))
    asked(primary, "XGROUP CREATE s g 0 MKSTREAM")
    asked(primary, "XADD s 1-0 f 1")
    asked(primary, "XREADGROUP GROUP g a STREAMS s >")
    replica.follow(primary)
    copied = replica.store.values["s"]
    assert copied == primary.store.values["s"] and copied is not primary.store.values["s"]
    asked(primary, "XACK s g 1-0")
    asked(primary, "XADD s 2-0 f 2")
    assert copied != primary.store.values["s"]
    assert asked(replica, "XPENDING s g")[0] == 1 and asked(replica, "XLEN s") == 1
