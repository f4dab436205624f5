"""A simulated Redis whose memory is at its limit."""

from __future__ import annotations

import pytest

from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.search.search import search
from fencepost.hunt.sim.network import Network, Refusal
from fencepost.hunt.sim.world import World
from fencepost.workloads.locks.redis import ACQUIRE_COUNTED, EXTEND, RELEASE

OOM = "OOM command not allowed when used memory > 'maxmemory'."


@pytest.fixture
def server():
    made = RedisServer("redis-1", 0, Network(World(), None), "none")
    made.handle(("SET", "k", "mine", "NX", "PX", 60_000))
    return made


def said(reply):
    return str(reply) if isinstance(reply, Refusal) else reply


def test_a_full_server_refuses_only_commands_that_need_more_memory(server):
    server.limit(True)
    for command in (("SET", "a", "1"), ("INCR", "n"), ("HSET", "h", "f", "1"), ("SETNX", "b", "1")):
        assert said(server.handle(command)) == OOM
    assert server.handle(("GET", "k")) == "mine"
    assert server.handle(("PEXPIRE", "k", "70000")) == 1
    assert server.handle(("EVAL", EXTEND, 1, "k", "mine", 80_000)) == 1
    assert server.handle(("EVAL", RELEASE, 1, "k", "mine")) == 1
    server.limit(False)
    assert server.handle(("SET", "a", "1")) == "OK"


def test_a_number_of_arguments_that_is_wrong_is_noticed_first(server):
    server.limit(True)
    assert "wrong number" in said(server.handle(("INCR",)))


def test_a_script_is_refused_at_its_first_write_alone(server):
    server.limit(True)
    counted = ("EVAL", ACQUIRE_COUNTED, 2, "other", "count", "secret", 1000)
    assert "OOM" in said(server.handle(counted))
    begun = "redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], 'new')"
    assert server.handle(("EVAL", begun, 1, "k")) == "OK"
    assert server.handle(("GET", "k")) == "new"


def test_under_allkeys_lru_older_keys_are_evicted_and_writes_continue(server):
    server.run_out()
    assert server.handle(("GET", "k")) is None
    assert server.handle(("SET", "k", "other", "NX", "PX", 1000)) == "OK"


def test_an_evicted_lock_is_a_lost_lock(setting):
    tried = search(setting("redis", "memory"), 1, 60, processes=1)
    assert tried.found is not None and "lease_exclusion" in tried.found[1]


def test_it_has_to_be_asked_for(setting):
    assert "memory" not in setting("redis").faults
