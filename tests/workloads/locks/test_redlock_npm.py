"""npm redlock's algorithm as ported, on five servers in memory."""

from __future__ import annotations

import pytest

from fencepost.workloads.contract.lock import Failed, Indeterminate
from fencepost.workloads.locks.redlock_npm import NpmRedlock
from fencepost.workloads.locks.registry import LOCKS

MS = 1_000_000
TTL = 1000 * MS
DRIFT = 12 * MS
NODES = ["a", "b", "c", "d", "e"]
KEY = "lock:orders"


@pytest.fixture
def client(world):
    def make(seed=0, **options):
        defaults = LOCKS["redlock-npm"].read_options({})
        return NpmRedlock(world.env(seed), NODES, {**defaults, "retries": 0, **options})

    return make


def set_state(world, state, *nodes):
    for node in nodes:
        world[node].state = state


def holders(world):
    return [node for node in NODES if world[node].get(KEY) is not None]


def test_a_grant_is_valid_for_the_ttl_less_the_drift_from_when_servers_were_asked(world, client):
    world.now = 500 * MS
    grant = client().acquire("orders", TTL)
    assert grant.deadline == 500 * MS + TTL - DRIFT
    assert {world[node].get(KEY) for node in NODES} == {grant.secret}


def test_an_extension_moves_the_deadline(world, client):
    one = client()
    grant = one.acquire("orders", TTL)
    world.now = 300 * MS
    assert one.extend(grant, TTL).deadline == 300 * MS + TTL - DRIFT


def test_an_extension_without_a_quorum_releases_the_lock(world, client):
    """The purpose of the port: the holder's own key is deleted while its lease still runs."""
    one = client()
    grant = one.acquire("orders", TTL)
    set_state(world, "silent", "a", "b", "c")
    with pytest.raises(Failed) as error:
        one.extend(grant, TTL)
    assert error.value.kind == "no-quorum"
    assert holders(world) == ["a", "b", "c"]
    set_state(world, "up", "a", "b", "c")
    world["a"].delete(KEY)
    assert world.now < grant.deadline
    assert client(1).acquire("orders", TTL).deadline > grant.deadline


def test_an_expired_lease_is_not_extended(world, client):
    one = client()
    grant = one.acquire("orders", TTL)
    world.now = grant.deadline + 1
    logged = len(world["a"].log)
    with pytest.raises(Failed, match="has expired already"):
        one.extend(grant, TTL)
    assert len(world["a"].log) == logged


def test_the_tries_are_as_far_apart_as_its_options_say(world, client):
    client(1).acquire("orders", TTL)
    with pytest.raises(Failed, match="no quorum in 4 tries"):
        client(2, retries=3, retry_delay_ms=50, retry_jitter_ms=10).acquire("orders", TTL)
    assert len(world.slept_s) == 3
    assert all(0.04 <= slept <= 0.06 for slept in world.slept_s)


def test_a_try_that_took_too_long_is_unlocked_everywhere(world, client):
    for node in NODES:
        world[node].takes_ms = 50
    with pytest.raises(Failed, match="no quorum"):
        client().acquire("orders", 200 * MS)
    assert holders(world) == []


def test_a_release_counts_servers_that_answer_whichever_keys_they_had(world, client):
    one = client()
    grant = one.acquire("orders", TTL)
    for node in NODES:
        world[node].delete(KEY)
    one.release(grant)
    set_state(world, "silent", "a", "b", "c")
    with pytest.raises(Indeterminate):
        one.release(grant)
