"""Options of a lock are parsed from text, or the error names the choices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.checker.facts import ends
from fencepost.harness.servers.kinds import KINDS
from fencepost.workloads.contract import locktype
from fencepost.workloads.locks.registry import LOCKS

REDLOCK = LOCKS["redlock"]
in_memory = pytest.mark.parametrize(
    "lock",
    [
        lock
        for lock in LOCKS.values()
        # The other server kinds exist only as real servers: the tests on a cluster cover them.
        if lock.kind == "redis" and not (lock.replicated or lock.library or lock.program)
    ],
    ids=lambda lock: lock.name,
)


def test_without_options_every_default_is_there():
    assert REDLOCK.read_options({}) == {
        "token": "none",
        "clock_check": True,
        "retries": 10,
        "retry_delay_ms": 100,
        "node_timeout_ms": 50,
    }


def test_text_is_parsed_by_the_option_s_type():
    read = REDLOCK.read_options({"clock_check": "FALSE", "token": "Majority", "retries": "0"})
    assert (read["clock_check"], read["token"], read["retries"]) == (False, "majority", 0)


@pytest.mark.parametrize(
    ("lock", "given", "message"),
    [
        (
            "redlock",
            {"quorum": "2"},
            "lock redlock has no option quorum; it has clock_check, node_timeout_ms, retries, "
            "retry_delay_ms, token",
        ),
        ("redlock", {"token": "two"}, "token=two: choose one of none, value, one, majority"),
        ("redis", {"token": "one"}, "option token=one: choose one of none, incr, paired"),
        ("redlock", {"clock_check": "yes"}, "clock_check=yes: choose one of true, false"),
        ("redlock", {"retries": "-1"}, "option retries=-1: must be an integer from 0 to"),
        ("redlock", {"retries": "many"}, "option retries=many: must be an integer from 0 to"),
        ("redlock", {"node_timeout_ms": "0"}, "node_timeout_ms=0: must be an integer from 1 to"),
        (
            "redlock",
            {"node_timeout_ms": "1.5"},
            "node_timeout_ms=1.5: must be an integer from 1 to",
        ),
    ],
)
def test_an_invalid_option_is_an_error_that_names_the_choices(lock, given, message):
    with pytest.raises(ValueError) as error:
        LOCKS[lock].read_options(given)
    assert message in str(error.value)


def test_the_grants_of_a_lock_end_as_is_usual_on_its_servers_or_only_by_their_lease():
    for lock in LOCKS.values():
        usual = KINDS[lock.kind].ends_with
        by_lease = lock.ends_with == "lease" and (lock.library or lock.name == "postgres-lease")
        assert lock.ends_with == usual or by_lease, lock.name


def test_a_lock_can_declare_only_properties_that_checkers_understand():
    assert locktype.ENDS_WITH == ends.ENDS_WITH


def test_an_unknown_kind_of_end_is_an_error_that_names_the_choices():
    with pytest.raises(ValueError) as error:
        replace(REDLOCK, ends_with="session")
    message = "lock redlock: ends_with 'session' is none of lease, close, connection"
    assert str(error.value) == message


def test_an_option_can_withdraw_a_promise():
    lock = LOCKS["etcd-lock-api"]
    assert lock.promises_with(lock.read_options({}))["minority"]
    assert lock.promises_with(lock.read_options({"node": "own"})) == {"fifo": True}


@in_memory
def test_every_lock_can_be_made_from_its_defaults_and_closed(lock, world):
    nodes = [f"{lock.kind}-{n}" for n in range(lock.servers)]
    made = lock.make(world.env(), nodes, lock.read_options({}))
    grant = made.acquire("orders", 1_000_000_000)
    assert (grant.token is not None) is lock.has_token(lock.read_options({}))
    made.close()
    assert all(link.closed for link in world.links)


@in_memory
def test_a_grant_carries_a_token_exactly_where_the_lock_says_that_it_has_one(lock, world):
    for choice in lock.options["token"].choices if "token" in lock.options else ():
        options = lock.read_options({"token": choice})
        nodes = [f"{choice}-{n}" for n in range(lock.servers)]
        grant = lock.make(world.env(), nodes, options).acquire("orders", 1_000_000_000)
        assert (grant.token is not None) is lock.has_token(options)


def test_a_lock_has_a_class_or_a_program_and_not_both():
    for changed in ({"make": None}, {"program": ("java",)}):
        with pytest.raises(ValueError, match="lock redlock: give it either `make` or `program`"):
            replace(REDLOCK, **changed)


@in_memory
def test_a_lock_renews_in_the_background_exactly_if_it_declares_so(lock, world):
    nodes = [f"{lock.kind}-{n}" for n in range(lock.servers)]
    by_option = isinstance(lock.renews, str)
    for given in ({}, {lock.renews: "true"}) if by_option else ({},):
        world.threads.clear()
        options = lock.read_options(given)
        made = lock.make(world.env(), nodes, options)
        made.acquire(f"orders-{len(given)}", 1_000_000_000)
        assert bool(world.threads) is lock.renews_with(options)
        made.close()


def test_renewal_may_depend_on_an_option_or_be_unknown():
    watched = replace(REDLOCK, renews="watchdog")
    assert watched.renews_with({"watchdog": True}) is True
    assert watched.renews_with({"watchdog": False}) is False
    assert watched.renews_with({}) is False
    assert replace(REDLOCK, renews=None).renews_with({}) is None
