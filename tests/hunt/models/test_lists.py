"""Lists of the simulated Redis, and clients that wait for an element."""

from __future__ import annotations

import pytest

from fencepost.hunt.models.redis.resp import bytes_of
from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.sim.link import SimLink
from fencepost.hunt.sim.network import LATER, Network, Refusal, Request
from fencepost.hunt.sim.world import MS, Node, World

SECOND = 1000 * MS
TELLS = """
redis.call('del', KEYS[1])
redis.call('lpush', KEYS[1], 1)
redis.call('pexpire', KEYS[1], ARGV[1])
return redis.call('llen', KEYS[1])
"""


@pytest.fixture
def server():
    return RedisServer("redis-1", 0, Network(World(), None), "none")


def asked(server, *command, client=0):
    """Return a client's reply, or the request that waits."""
    reply = server.handle(command)
    if reply is not LATER:
        return str(reply) if isinstance(reply, Refusal) else reply
    link = SimLink(server.network, Node(f"client-{client + 1}", client), server, SECOND)
    request = Request(link, command, server.world.now, server.boots)
    server.wait(request)
    return request


def until(server, ms):
    """Let time pass."""
    world = server.world
    while world.queue and world.queue[0][0] <= ms * MS:
        world.queue.sort(key=lambda one: one[:2])
        at, _, event = world.queue.pop(0)
        if event.node.paused_until > at:
            world.at(event.node.paused_until, event)
            continue
        world.now = max(world.now, at)
        if not event.off and not isinstance(event, Request):
            event.due()
    world.now = ms * MS


def test_a_list_is_pushed_to_and_taken_from_at_both_ends(server):
    assert asked(server, "RPUSH", "a", "1", "2") == 2
    assert asked(server, "LPUSH", "a", "3", "4") == 4
    assert asked(server, "LRANGE", "a", "0", "-1") == ["4", "3", "1", "2"]
    assert asked(server, "LPOP", "a") == "4"
    assert asked(server, "RPOP", "a", "2") == ["2", "1"]
    assert asked(server, "BLPOP", "a", "1") == ["a", "3"]
    assert asked(server, "EXISTS", "a") == 0


def test_a_list_expires_and_goes_where_memory_runs_out(server):
    asked(server, "LPUSH", "a", "1")
    asked(server, "PEXPIRE", "a", "50")
    server.world.now = 51 * MS
    assert asked(server, "LLEN", "a") == 0
    asked(server, "LPUSH", "a", "1")
    server.run_out()
    assert asked(server, "LPOP", "a") is None


def test_a_replica_has_the_lists_of_its_primary():
    network = Network(World(), None)
    primary, replica = (RedisServer(f"redis-{n}", n, network, "none") for n in (1, 2))
    replica.follow(primary)
    asked(primary, "LPUSH", "a", "1")
    waits = asked(primary, "BLPOP", "b", "0")
    asked(primary, "RPUSH", "b", "2", "3")
    until(primary, 1)
    assert waits.reply == ["b", "2"]
    assert replica.store.values == {"a": ["1"], "b": ["3"]}
    assert "READONLY" in asked(replica, "BLPOP", "b", "1")


def test_the_first_waiter_is_served_first_and_by_a_script_as_well(server):
    first, second = (asked(server, "BLPOP", "a", "0", client=n) for n in (0, 1))
    assert asked(server, "EVAL", TELLS, 1, "a", "1000") == 1
    assert (first.reply, second.reply) == (["a", "1"], None)
    assert asked(server, "RPUSH", "a", "2", "3") == 2
    assert second.reply == ["a", "2"]
    assert asked(server, "LRANGE", "a", "0", "-1") == ["3"]


def test_of_several_lists_the_one_that_was_made_first_serves(server):
    waits = asked(server, "BRPOP", "a", "b", "0")
    asked(server, "EVAL", "redis.call('rpush', 'b', 1, 2) redis.call('rpush', 'a', 3)", 0)
    assert waits.reply == ["b", "2"]


def test_no_client_waits_in_a_transaction_or_is_served_during_one(server):
    waits = asked(server, "BLPOP", "a", "0")
    with server.together():
        assert asked(server, "LPUSH", "a", "1") == 1
        assert asked(server, "BLPOP", "b", "1") is None
        assert asked(server, "DEL", "a") == 1
    assert not waits.answered
    assert "not allowed from script" in asked(server, "EVAL", "redis.call('blpop', 'a', 1)", 0)


def test_a_wait_times_out_in_the_cycle_after_its_end_or_with_a_command(server):
    first, second = (asked(server, "BLPOP", "a", "0.25", client=n) for n in (0, 1))
    until(server, 299)
    assert not first.answered
    until(server, 300)
    assert first.answered and second.answered and first.reply is None
    third = asked(server, "BLPOP", "a", "0.25")
    until(server, 551)
    assert not third.answered
    asked(server, "PING")
    assert third.answered


def test_a_clock_that_jumps_ends_a_wait_and_one_that_goes_back_makes_it_longer(server):
    ahead = asked(server, "BLPOP", "a", "30")
    server.settle()
    server.clock.jump(0, 31 * SECOND)
    until(server, 100)
    assert ahead.answered
    back = asked(server, "BLPOP", "a", "1")
    server.settle()
    server.clock.jump(server.world.now, -2 * SECOND)
    until(server, 3000)
    assert not back.answered
    until(server, 3200)
    assert back.answered


def test_a_paused_server_reads_earlier_input_before_it_times_out_waits(server):
    waits = asked(server, "BLPOP", "a", "0.25")
    server.paused_until = 1000 * MS
    world = server.world
    until(server, 999)

    class Push:
        node, off = server, False

        def due(self):
            assert asked(server, "LPUSH", "a", "1") == 1

    world.at(world.now, Push())
    until(server, 1000)
    assert waits.reply == ["a", "1"]


def test_a_client_that_has_closed_its_connection_is_served_nothing_once_the_server_noticed(server):
    gone, stays = (asked(server, "BLPOP", "a", "0", client=n) for n in (0, 1))
    server.left(gone.link)
    asked(server, "LPUSH", "a", "lost")  # the server has not noticed yet
    assert gone.reply == ["a", "lost"]
    gone = asked(server, "BLPOP", "a", "0")
    server.left(stays.link)
    until(server, 1)
    asked(server, "LPUSH", "a", "1")
    assert not stays.answered and gone.reply == ["a", "1"]


def test_a_crash_ends_all_waits(server):
    waits = asked(server, "BLPOP", "a", "0.2")
    server.crash(power=False)
    server.start()
    until(server, 1000)
    assert asked(server, "LPUSH", "a", "1") == 1
    assert not waits.answered


def test_where_there_is_nothing_to_take_the_reply_is_an_array_that_is_null():
    assert bytes_of(("BLPOP", "a", "1"), None, 2) == b"*-1\r\n"
    assert bytes_of(("LPOP", "a", "1"), None, 2) == b"*-1\r\n"
    assert bytes_of(("LPOP", "a"), None, 2) == b"$-1\r\n"
    assert bytes_of(("BLPOP", "a", "1"), None, 3) == b"_\r\n"


def test_clients_wait_for_the_lowest_and_the_highest_member_of_a_sorted_set(server):
    assert asked(server, "ZADD", "z", "1", "a", "2", "b", "3", "c") == 3
    assert asked(server, "BZPOPMIN", "y", "z", "0") == ["z", "a", "1"]
    assert asked(server, "BZPOPMAX", "z", "0") == ["z", "c", "3"]
    assert asked(server, "ZPOPMIN", "z") == ["b", "2"]
    lowest = asked(server, "BZPOPMIN", "z", "0")
    late = asked(server, "BZPOPMAX", "z", "0.25", client=1)
    asked(server, "LPUSH", "z", "1")
    asked(server, "DEL", "z")
    assert lowest.reply is None and server.blocked == 2
    asked(server, "ZADD", "z", "5", "x")
    assert lowest.reply == ["z", "x", "5"] and server.blocked == 1
    until(server, 400)
    assert late.back and late.reply is None and server.blocked == 0
    assert bytes_of(("BZPOPMIN", "z", "1"), None, 2) == b"*-1\r\n"
