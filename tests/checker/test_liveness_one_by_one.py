"""Clients that ask each server by itself may leave keys on some, although they were refused."""

from __future__ import annotations

import pytest

from tests.checker.liveness_stories import (
    MINORITY,
    SERVERS,
    STUCK,
    TTL,
    asks,
    asks_in_vain,
    limits,
    verdict,
)

ONE = SERVERS[:1]


@pytest.mark.parametrize(
    "test", [{"servers": SERVERS}, {"servers": SERVERS, "lock": {"ends_with": "close"}}]
)
def test_such_a_lock_has_no_more_than_the_bound_in_calm(story, test):
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=100)
    asks_in_vain(story, 200, STUCK)
    assert limits(verdict(story, **test)) == ["2.100"]


def refused(story):
    """A request is refused at 1.5 s. Its keys may last until 2.5 s."""
    asks(story, 1000, 1500, process=3, error=("no-quorum", "granted by 0"))
    asks_in_vain(story, 1600, STUCK)


@pytest.mark.parametrize(("servers", "limit"), [(ONE, "3.500"), (SERVERS, "4.500")])
def test_a_refused_request_may_leave_its_keys_for_a_lease_if_a_fault_hindered_its_client(
    story, servers, limit
):
    refused(story)
    story.fault("pause", 1000, 1100, ["client-3"])
    assert limits(verdict(story, servers=servers)) == [limit]


@pytest.mark.parametrize(("ttl", "limit"), [({}, "4.500"), ({"ttl": 400_000_000}, "3.900")])
def test_its_keys_last_for_its_own_lease_or_the_longest_of_the_lock(story, ttl, limit):
    story.call(3, "acquire", 1000, 1500, {"lock": "orders", **ttl}, type="fail", error=["busy", ""])
    asks_in_vain(story, 1600, STUCK)
    story.fault("pause", 1000, 1100, ["client-3"])
    assert limits(verdict(story, servers=SERVERS)) == [limit]


def test_its_requests_may_arrive_after_a_cut(story):
    """The cut ends 3.5 s after it was sent."""
    refused(story)
    links = [["client-3", server] for server in SERVERS]
    story.fault("partition", 1200, 4500, ["client-3", *SERVERS], arguments={"links": links})
    assert limits(verdict(story, servers=SERVERS)) == ["11.200"]


def test_a_refused_request_that_no_fault_met_leaves_nothing(story):
    refused(story)
    assert limits(verdict(story, servers=SERVERS)) == ["2.000"]


def test_the_keys_that_it_leaves_on_servers_of_a_minority_keep_no_client_from_the_lock(story):
    """They last for a lease after the fault, as leases that it met do."""
    refused(story)
    story.fault("pause", 900, 20_000, SERVERS[:2])
    assert limits(verdict(story, **MINORITY)) == ["3.900", "23.000"]


def cut_off(story, far, **test):
    """A client is cut off from some servers, and another asks in vain."""
    links = [["client-3", server] for server in SERVERS[:far]]
    near = ["client-3", *SERVERS[:far]]
    story.fault("partition", 900, 4500, near, arguments={"links": links})
    return limits(verdict(story, **MINORITY, **test))


@pytest.mark.parametrize(("far", "limit"), [(1, ["3.900", "7.500"]), (3, ["11.200"])])
def test_a_cut_from_one_server_holds_nothing_back_that_matters(story, far, limit):
    """The cut of one is a fault that the lock survives. It takes the lock for a lease each time."""
    refused(story)
    assert cut_off(story, far) == limit


@pytest.mark.parametrize(("ends_with", "limit"), [("lease", "7.500"), ("close", "11.200")])
def test_a_request_without_an_answer_behind_it_leaves_a_key_on_that_server(story, ends_with, limit):
    asks(story, 1000, 1500, process=3, type="info", error=("timeout", "silence"))
    asks_in_vain(story, 1600, STUCK)
    assert cut_off(story, 1, lock={"ends_with": ends_with}) == [limit]


def lockstep(story):
    """One client has the lock. Then two ask at the same time, again and again, with long pauses."""
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=100)
    for begin in range(4000, 16_000, 3000):
        asks(story, begin, begin + 100, process=2, error=("busy", ""))
        asks(story, begin + 10, begin + 90, process=3, error=("busy", ""))


def test_clients_that_ask_at_the_same_time_may_refuse_one_another_where_servers_do_not_agree(story):
    lockstep(story)
    judged = verdict(story, servers=SERVERS)
    assert judged.valid == "unknown"
    assert judged.summary == (
        "Clients asked for the free lock in vain from 0.100 s on, but at the same time: the "
        "history does not tell whether because they refused one another."
    )
    assert verdict(story, servers=ONE).valid is False
    assert verdict(story, servers=SERVERS, lock={"ends_with": "close"}).valid is False


def test_a_dead_lock_is_dead_though_clients_also_asked_at_the_same_time(story):
    lockstep(story)
    for begin in (20_000, 23_000):
        asks(story, begin, begin + 100, process=2, error=("busy", ""))
    assert verdict(story, servers=SERVERS).valid is False


def test_no_doubt_is_left_where_one_of_them_was_granted(story):
    lockstep(story)
    for at in range(4000, 16_000, 3000):
        story.grant(4, f"h{at}", at=at + 50, until=at + 50 + TTL)
        story.release(4, f"h{at}", at=at + 60)
    assert verdict(story, servers=SERVERS).valid is True
