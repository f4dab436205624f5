"""Redlock follows its specification, on five servers in memory."""

from __future__ import annotations

import pytest

from fencepost.workloads.contract.lock import Failed, Indeterminate
from fencepost.workloads.locks.redlock import Redlock
from fencepost.workloads.locks.registry import LOCKS

MS = 1_000_000
TTL = 1000 * MS
DRIFT = 12 * MS  # 1 % of the TTL and 2 ms
NODES = ["a", "b", "c", "d", "e"]
KEY, COUNTER = "lock:orders", "token:orders"


@pytest.fixture
def client(world):
    """Make a client with these options; by default it tries once."""

    def make(seed=0, **options):
        defaults = LOCKS["redlock"].read_options({})
        return Redlock(world.env(seed), NODES, {**defaults, "retries": 0, **options})

    return make


def set_state(world, state, *nodes):
    for node in nodes:
        world[node].state = state


def kind(error):
    return error.value.kind, type(error.value)


def holders(world):
    return [node for node in NODES if world[node].get(KEY) is not None]


def test_a_grant_is_valid_for_the_ttl_minus_the_acquisition_time_and_the_drift(world, client):
    world.now = 500 * MS
    for node in NODES:
        world[node].takes_ms = 10
    grant = client().acquire("orders", TTL)
    assert world.now == 550 * MS
    assert grant.deadline == 500 * MS + TTL - DRIFT
    assert grant.token is None
    assert {world[node].get(KEY) for node in NODES} == {grant.secret}


@pytest.mark.parametrize("state", ["down", "silent", "mute"])
def test_three_of_five_servers_are_enough(world, client, state):
    set_state(world, state, "a", "e")
    assert client().acquire("orders", TTL).deadline == TTL - DRIFT


@pytest.mark.parametrize("state", ["down", "silent", "mute"])
def test_two_of_five_servers_are_not_enough_and_are_released(world, client, state):
    set_state(world, state, "a", "b", "e")
    with pytest.raises(Failed) as error:
        client().acquire("orders", TTL)
    assert kind(error) == ("not-granted", Failed)
    assert "granted by 2 of 5, no answer from a, b, e, 3 needed" in error.value.text
    assert holders(world) == []


def test_a_failed_acquire_is_released_also_where_only_the_reply_was_lost(world, client):
    """The server did take the lock; without the release it would keep it for the whole TTL."""
    set_state(world, "mute", "c", "d", "e")
    with pytest.raises(Failed):
        client().acquire("orders", TTL)
    assert [world[node].log[0][0] for node in ("c", "d", "e")] == ["SET"] * 3
    assert holders(world) == []


def test_a_failed_acquire_takes_nothing_from_the_holder(world, client):
    first = client(1).acquire("orders", TTL)
    with pytest.raises(Failed):
        client(2).acquire("orders", TTL)
    assert {world[node].get(KEY) for node in NODES} == {first.secret}


def test_two_clients_are_never_granted_the_lock_within_one_lease(world, client):
    one, two = client(1), client(2)
    grant = one.acquire("orders", TTL)
    world.now = grant.deadline
    with pytest.raises(Failed):
        two.acquire("orders", TTL)
    world.now = TTL + MS  # a key is gone once its TTL has passed
    assert two.acquire("orders", TTL).secret != grant.secret


def test_an_answer_after_the_lease_is_no_grant_and_is_released(world, client):
    for node in NODES:
        world[node].takes_ms = 200
    with pytest.raises(Failed, match="but after 1000 ms"):
        client(node_timeout_ms=300).acquire("orders", TTL)
    assert holders(world) == []


@pytest.mark.parametrize(("takes_ms", "granted"), [(197, True), (198, False)])
def test_the_drift_is_subtracted_from_the_remaining_time(world, client, takes_ms, granted):
    """Five times 197 ms leave 3 ms of the 1000 - 12; five times 198 ms leave none."""
    for node in NODES:
        world[node].takes_ms = takes_ms
    lock = client(node_timeout_ms=300)
    if granted:
        assert lock.acquire("orders", TTL).deadline == world.now + 3 * MS
    else:
        with pytest.raises(Failed):
            lock.acquire("orders", TTL)


def test_without_the_clock_check_a_late_answer_is_believed_for_a_whole_ttl(world, client):
    for node in NODES:
        world[node].takes_ms = 300
    grant = client(node_timeout_ms=400, clock_check=False).acquire("orders", TTL)
    assert world.now == 1500 * MS
    assert grant.deadline == 1500 * MS + TTL - DRIFT


def test_one_silent_server_costs_one_timeout(world, client):
    set_state(world, "silent", "b")
    client(node_timeout_ms=50).acquire("orders", TTL)
    assert world.now == 50 * MS


def test_it_can_be_stopped_before_the_last_server_s_reply_is_read(world, client):
    client().acquire("orders", TTL)
    assert world.reached == ["replies-in-flight"]


def test_it_gives_up_after_its_retries_with_a_random_delay_before_each(world, client):
    client(1).acquire("orders", 600_000 * MS)
    with pytest.raises(Failed, match=r"\(try 4\)"):
        client(2, retries=3, retry_delay_ms=100).acquire("orders", TTL)
    sets = [command for command in world["a"].log if command[0] == "SET"]
    assert len(sets) == 1 + 4
    assert len({secret for _, _, secret, *_ in sets}) == 5
    assert len(world.slept_s) == 3
    assert len(set(world.slept_s)) == 3
    assert all(0 <= delay <= 0.1 for delay in world.slept_s)


def test_a_retry_is_granted_free_servers_and_counts_its_lease_from_there(world, client):
    client(1).acquire("orders", 60 * MS)
    grant = client(2, retries=50, retry_delay_ms=10).acquire("orders", TTL)
    assert grant.deadline == world.now + TTL - DRIFT


def test_the_random_value_read_as_a_token_is_unique_and_does_not_rise(world, client):
    lock = client(token="value")
    tokens = []
    for _ in range(12):
        grant = lock.acquire("orders", TTL)
        tokens.append(grant.token)
        lock.release(grant)
    assert len(set(tokens)) == 12
    assert tokens != sorted(tokens)


def test_a_token_of_one_server_counts_the_grants_there(world, client):
    lock = client(token="one")
    tokens = []
    for _ in range(3):
        grant = lock.acquire("orders", TTL)
        tokens.append(grant.token)
        lock.release(grant)
    assert tokens == [1, 2, 3]
    assert world["b"].get(COUNTER) is None


def test_without_the_server_that_counts_there_is_no_grant_and_nothing_is_kept(world, client):
    set_state(world, "down", "a")
    with pytest.raises(Failed, match="no token: refused") as error:
        client(token="one").acquire("orders", TTL)
    assert kind(error) == ("not-granted", Failed)
    assert holders(world) == []


def test_a_token_of_a_majority_is_the_highest_count_of_those_that_granted(world, client):
    world["c"].ask("SET", COUNTER, 41)
    world["e"].ask("SET", COUNTER, 900)
    set_state(world, "silent", "e")
    assert client(token="majority").acquire("orders", TTL).token == 42


def test_only_a_server_that_grants_counts(world, client):
    client(1, token="majority").acquire("orders", TTL)
    with pytest.raises(Failed):
        client(2, token="majority").acquire("orders", TTL)
    assert [world[node].get(COUNTER) for node in NODES] == ["1"] * 5


def test_an_extension_needs_a_quorum_of_its_own(world, client):
    lock = client()
    grant = lock.acquire("orders", TTL)
    world.now = 500 * MS
    set_state(world, "down", "a", "b")
    longer = lock.extend(grant, TTL)
    assert longer.deadline == 500 * MS + TTL - DRIFT
    assert (longer.secret, longer.token) == (grant.secret, grant.token)
    set_state(world, "down", "c")
    with pytest.raises(Failed) as error:
        lock.extend(grant, TTL)
    assert kind(error) == ("no-quorum", Failed)


def test_an_extension_whose_answers_come_after_its_lease_is_none(world, client):
    lock = client(node_timeout_ms=300)
    grant = lock.acquire("orders", TTL)
    for node in NODES:
        world[node].takes_ms = 198
    with pytest.raises(Failed, match="but too late"):
        lock.extend(grant, TTL)


@pytest.mark.parametrize("verb", ["extend", "release"])
def test_a_hold_that_a_majority_says_is_gone_is_not_held(world, client, verb):
    lock = client()
    grant = lock.acquire("orders", TTL)
    for node in ("a", "b", "c"):
        world[node].delete(KEY)
    with pytest.raises(Failed) as error:
        lock.extend(grant, TTL) if verb == "extend" else lock.release(grant)
    assert kind(error) == ("not-held", Failed)


def test_a_release_that_the_silent_servers_may_have_done_is_not_known(world, client):
    lock = client()
    grant = lock.acquire("orders", TTL)
    set_state(world, "mute", "c", "d", "e")
    with pytest.raises(Indeterminate) as error:
        lock.release(grant)
    assert kind(error) == ("no-quorum", Indeterminate)


def test_a_release_frees_every_server_for_the_next(world, client):
    one = client(1)
    one.release(one.acquire("orders", TTL))
    assert holders(world) == []


def test_a_release_leaves_the_lock_of_its_successor_alone(world, client):
    one, two = client(1), client(2)
    grant = one.acquire("orders", TTL)
    world.now = TTL + MS  # a key is gone once its TTL has passed
    two.acquire("orders", TTL)
    with pytest.raises(Failed) as error:
        one.release(grant)
    assert kind(error) == ("not-held", Failed)
    assert holders(world) == NODES


def test_closing_closes_the_connections_and_nothing_else(world, client):
    lock = client()
    lock.acquire("orders", TTL)
    lock.close()
    assert all(link.closed for link in world.links)
    assert holders(world) == NODES
