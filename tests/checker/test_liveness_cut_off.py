"""A client that a fault separates from some servers: when the lock must be granted to it."""

from __future__ import annotations

import pytest

from tests.checker.liveness_stories import MINORITY, SERVERS, asks_in_vain, limits, verdict

BEGIN, END, LAST = 3000, 20_000, 21_000
DURING = ["6.000"]
"""The cut takes the lock for a lease after its begin; then the client has the bound."""
CLOSE = {"lock": {"ends_with": "close"}}


@pytest.fixture
def asking(story):
    """Client 7 asks without a pause from before a fault until its end, and is always refused. The
    lock was granted to it until the fault began, and is granted after it."""
    story.grant(7, "h0", at=2900, until=3900)
    story.release(7, "h0", at=2950)
    asks_in_vain(story, BEGIN, LAST)
    story.grant(7, "h1", at=LAST + 100, until=LAST + 1100)
    return story


def cut_off(story, client, servers, begin=BEGIN, end=END):
    links = [[client, server] for server in servers]
    story.fault("partition", begin, end, [client, *servers], arguments={"links": links})


@pytest.mark.parametrize(("ends_with", "limit"), [("lease", "6.000"), ("close", "5.000")])
@pytest.mark.parametrize(("far", "survives"), [(1, True), (2, True), (3, False), (5, False)])
def test_a_lock_that_survives_a_minority_is_granted_to_a_client_cut_off_from_one(
    asking, far, survives, ends_with, limit
):
    """A request that was refused by servers that agree left no lease that the cut prolongs."""
    cut_off(asking, "client-7", SERVERS[:far])
    found = verdict(asking, lock={"ends_with": ends_with}, **MINORITY)
    assert limits(found) == ([limit] if survives else [])


@pytest.mark.parametrize("far", [1, 2, 3, 5])
@pytest.mark.parametrize("servers", [SERVERS[:1], SERVERS])
def test_without_the_promise_a_client_cut_off_from_any_server_is_hindered(asking, servers, far):
    cut_off(asking, "client-7", servers[:far])
    assert limits(verdict(asking, servers=servers, **CLOSE)) == []


@pytest.mark.parametrize("far", [1, 2, 3, 5])
@pytest.mark.parametrize("servers", [SERVERS[:1], SERVERS])
def test_without_the_promise_no_other_client_is_hindered_by_it(asking, servers, far):
    asking.read(3, 2000, None, 0)
    cut_off(asking, "client-3", servers[:far])
    assert limits(verdict(asking, servers=servers, **CLOSE)) == ["4.950"]


def test_the_cuts_of_one_client_add_up(asking):
    cut_off(asking, "client-7", SERVERS[:2])
    cut_off(asking, "client-7", SERVERS[2:3], begin=BEGIN + 1000)
    assert limits(verdict(asking, **MINORITY)) == []


def test_a_cut_of_a_client_adds_up_with_the_servers_that_are_down(asking):
    cut_off(asking, "client-7", SERVERS[:2])
    asking.fault("pause", BEGIN + 1000, END, SERVERS[2:3])
    assert limits(verdict(asking, **MINORITY)) == []


def test_the_cuts_of_two_clients_do_not_add_up(asking):
    asking.read(3, 2000, None, 0)
    cut_off(asking, "client-7", SERVERS[:2])
    cut_off(asking, "client-3", SERVERS[2:4])
    assert limits(verdict(asking, **MINORITY)) == DURING


def test_a_cut_of_another_client_from_a_majority_does_not_count(asking):
    asking.read(3, 2000, None, 0)
    cut_off(asking, "client-7", SERVERS[:1])
    cut_off(asking, "client-3", SERVERS[1:])
    assert limits(verdict(asking, **MINORITY)) == DURING


def test_a_fault_of_unknown_effect_may_take_the_majority(asking):
    cut_off(asking, "client-7", SERVERS[:2])
    asking.fault("gremlin", BEGIN, END, ["redis-4"])
    assert limits(verdict(asking, **MINORITY)) == []
