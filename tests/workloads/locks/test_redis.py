"""The lock and the register on one server, and the locks that are broken on purpose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.workloads.contract.lock import Failed, Grant, Indeterminate
from fencepost.workloads.contract.store import Opening
from fencepost.workloads.locks.broken import always_yes, no_owner_check, no_ttl
from fencepost.workloads.locks.redis import RedisLock
from fencepost.workloads.resources.redis_register import RedisRegister
from fencepost.workloads.resources.registry import GUARDS

MS = 1_000_000
TTL = 1000 * MS
OPTIONS = {"token": "none", "retries": 0, "retry_delay_ms": 100, "node_timeout_ms": 50}


@pytest.fixture
def client(world):
    def make(seed=0, lock=RedisLock, **options):
        return lock(world.env(seed), ["a"], OPTIONS | options)

    return make


def test_a_lock_is_granted_for_the_ttl_from_when_it_was_asked_for(world, client):
    world["a"].takes_ms = 30
    assert client().acquire("orders", TTL).deadline == TTL
    assert world.now == 30 * MS


def test_a_second_client_waits_for_release_or_expiry(world, client):
    one, two = client(1), client(2)
    grant = one.acquire("orders", TTL)
    with pytest.raises(Failed) as error:
        two.acquire("orders", TTL)
    assert error.value.kind == "not-granted"
    one.release(grant)
    two.acquire("orders", TTL)
    world.now += TTL + MS  # a key is gone once its TTL has passed
    one.acquire("orders", TTL)


def test_it_gives_up_after_its_retries(world, client):
    client(1).acquire("orders", 600_000 * MS)
    with pytest.raises(Failed, match="after 4 tries"):
        client(2, retries=3).acquire("orders", TTL)
    assert len(world["a"].log) == 1 + 4
    assert len(world.slept_s) == 3
    assert all(0.05 <= delay <= 0.1 for delay in world.slept_s)


def test_an_acquire_without_answer_may_have_been_granted(world, client):
    world["a"].state = "silent"
    with pytest.raises(Indeterminate):
        client().acquire("orders", TTL)


def test_a_server_that_can_not_be_reached_has_certainly_granted_nothing(world, client):
    world["a"].state = "down"
    with pytest.raises(Failed) as error:
        client().acquire("orders", TTL)
    assert (error.value.kind, type(error.value)) == ("unreachable", Failed)


def test_counted_grants_carry_rising_tokens_and_a_refusal_counts_nothing(world, client):
    one, two = client(1, token="incr"), client(2, token="incr")
    first = one.acquire("orders", TTL)
    with pytest.raises(Failed):
        two.acquire("orders", TTL)
    one.release(first)
    assert (first.token, two.acquire("orders", TTL).token) == (1, 2)


def test_only_the_holder_extends_and_releases(world, client):
    lock = client()
    grant = lock.acquire("orders", TTL)
    world.now = 500 * MS
    assert lock.extend(grant, TTL).deadline == 500 * MS + TTL
    stranger = Grant("orders", None, None, "another")
    for verb in (lambda: lock.extend(stranger, TTL), lambda: lock.release(stranger)):
        with pytest.raises(Failed) as error:
            verb()
        assert error.value.kind == "not-held"
    lock.release(grant)
    with pytest.raises(Failed) as error:
        lock.release(grant)
    assert error.value.kind == "not-held"


def test_always_yes_grants_to_everybody_with_one_token(client):
    grants = [client(seed, always_yes).acquire("orders", TTL) for seed in range(2)]
    assert [grant.token for grant in grants] == [1, 1]


def test_no_owner_check_releases_the_lock_of_its_successor(world, client):
    one, two = client(1, no_owner_check), client(2, no_owner_check)
    grant = one.acquire("orders", TTL)
    world.now = TTL + MS  # a key is gone once its TTL has passed
    two.acquire("orders", TTL)
    one.release(grant)
    assert world["a"].get("lock:orders") is None


def test_no_ttl_keeps_the_lock_of_the_dead_for_ever(world, client):
    assert client(1, no_ttl).acquire("orders", TTL).deadline is None
    world.now = 10**6 * TTL
    with pytest.raises(Failed):
        client(2, no_ttl).acquire("orders", TTL)


@pytest.fixture
def register(world):
    def make(guard="none"):
        return RedisRegister(
            Opening(world.env(), "store", [], GUARDS[guard], 1, GUARDS[guard].rules["lua"])
        )

    return make


def token(number):
    return Grant("orders", number, None, "")


def test_a_register_is_empty_at_version_zero_and_counts_the_writes_that_it_accepts(register):
    account = register()
    assert account.read("account") == (None, 0)
    assert account.write("account", "x", 0, None) == 1
    assert account.write("account", "y", 0, token(1)) == 2
    assert account.read("account") == ("y", 2)


def test_a_fenced_register_refuses_a_token_below_the_highest_and_stays_as_it_was(register):
    account = register("fenced")
    account.write("account", "x", 0, token(5))
    account.write("account", "y", 1, token(5))
    with pytest.raises(Failed, match="token 4 is below 5, the highest seen") as error:
        account.write("account", "z", 2, token(4))
    assert error.value.kind == "refused"
    assert account.read("account") == ("y", 2)


def test_a_fence_that_compares_text_takes_9_after_10_and_refuses_10_after_9(register):
    account = register("broken-as-text")
    assert account.write("account", "x", 0, token(10)) == 1
    assert account.write("account", "y", 1, token(9)) == 2
    with pytest.raises(Failed, match="token 10 is below 9, compared as text"):
        account.write("account", "z", 2, token(10))


def test_a_register_that_is_shown_values_refuses_a_replaced_one_and_takes_the_sleeper_s_first(
    register,
):
    account = register("new-value")
    assert account.write("account", "x", 0, token(7)) == 1
    assert account.write("account", "y", 1, token(7)) == 2
    assert account.write("account", "z", 2, token(3)) == 3
    with pytest.raises(Failed, match="token 7 was replaced by 3"):
        account.write("account", "late", 2, token(7))
    # A sleeper that was granted the lock before all of them, and has not written yet.
    assert account.write("account", "late", 0, token(5)) == 4


def test_a_late_write_between_another_s_read_and_write_costs_no_update_where_versions_count(
    register,
):
    fenced, compared = register("fenced"), register("fenced-version")
    for account, name in ((fenced, "account-1"), (compared, "account-2")):
        assert account.read(name) == (None, 0)  # the later holder, whose token is 2
        account.write(name, "late", 0, token(1))
    assert fenced.write("account-1", "y", 0, token(2)) == 2  # over a value that it had not seen
    with pytest.raises(Failed, match="token 2, version 0: version 1 is current"):
        compared.write("account-2", "y", 0, token(2))
    assert compared.write("account-2", "y", 1, token(2)) == 2
    # A late writer that has read again has the right version, and the wrong token.
    with pytest.raises(Failed, match="token 1, version 2: token 2 is current"):
        compared.write("account-2", "late", 2, token(1))


@pytest.mark.parametrize("grant", [None, token(None)])
def test_a_fenced_register_refuses_a_write_without_a_token(world, register, grant):
    with pytest.raises(Failed, match="guard fenced needs a fencing token, but the grant has none"):
        register("fenced").write("account", "x", 0, grant)
    assert world["store"].log == []


def test_a_write_whose_answer_is_lost_may_have_been_stored(world, register):
    account = register()
    world["store"].state = "mute"
    with pytest.raises(Indeterminate):
        account.write("account", "x", 0, None)
    world["store"].state = "up"
    assert account.read("account") == ("x", 1)


def test_each_resource_has_a_register_of_its_own_with_its_own_guard(world, register):
    store = register("fenced")
    store.write("account", "x", 0, token(9))
    assert store.write("account-1", "y", 0, token(2)) == 1
    assert store.read("account-1") == ("y", 1)
    with pytest.raises(Failed, match="token 8 is below 9"):
        store.write("account", "z", 1, token(8))
    # The keys that docs/protocol.md names.
    assert world["store"].keys() == {"resource:register", "resource:account-1"}


def pair(number, minor):
    return Grant("orders", number, None, "", minor=minor)


def test_a_paired_register_refuses_a_client_that_may_overwrite_a_pending_grant(register):
    account = register("paired")
    account.write("account", "x", 0, pair(1, 1))
    account.write("account", "y", 1, pair(1, 1))  # the writer of the last one
    with pytest.raises(Failed, match="minor 1 of token 2 is not above 1, the highest seen"):
        account.write("account", "z", 2, pair(2, 1))
    # The refused write raised the minimum: the first one is late from now on.
    with pytest.raises(Failed, match="minor 1 of token 1 is not above 2"):
        account.write("account", "late", 2, pair(1, 1))
    assert account.write("account", "w", 2, pair(3, 3)) == 3


def test_a_compared_register_accepts_a_write_on_top_of_the_version_that_is_there(register):
    account = register("compare-and-set")
    assert account.write("account", "x", 0, None) == 1
    with pytest.raises(Failed, match="version 0 was read, but 1 is current"):
        account.write("account", "y", 0, None)
    assert account.write("account", "y", 1, None) == 2


def test_a_paired_grant_carries_the_lowest_grant_that_was_not_given_back(world, client):
    one, two, three = (client(n, token="paired") for n in range(3))
    lost = one.acquire("orders", TTL)
    world.now += TTL + MS
    second = two.acquire("orders", TTL)
    assert [(grant.token, grant.minor) for grant in (lost, second)] == [(1, 1), (2, 1)]
    # The writer has shown its token to the resource: earlier ones are released with it.
    two.release(replace(second, settled=True))
    third = three.acquire("orders", TTL)
    assert (third.token, third.minor) == (3, 3)
