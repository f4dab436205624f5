"""Clients that ask each server by itself may leave keys on some, although they were refused."""

from __future__ import annotations

import pytest

from tests.checker.liveness_stories import SERVERS, STUCK, TTL, asks, asks_in_vain, limits, verdict

ONE = SERVERS[:1]


def test_such_a_lock_has_a_lease_more_than_the_bound(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=100)
    asks_in_vain(story, 200, STUCK)
    assert limits(verdict(story, servers=SERVERS)) == ["3.100"]
    assert limits(verdict(story, servers=SERVERS, lock={"ends_with": "close"})) == ["2.100"]
    assert limits(verdict(story, servers=ONE)) == ["2.100"]


def test_it_is_not_dead_if_it_is_granted_by_then(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=100)
    asks_in_vain(story, 200, 3000)
    story.grant(2, "h2", asked=3050, at=3100, until=4000)
    assert verdict(story, servers=SERVERS).valid is True
    assert verdict(story, servers=ONE).valid is False


def refused(story):
    """A request is refused at 1.5 s. Its keys may last until 2.5 s."""
    asks(story, 1000, 1500, process=3, error=("no-quorum", "granted by 0"))
    asks_in_vain(story, 1600, STUCK)


@pytest.mark.parametrize(("servers", "limit"), [(ONE, "3.500"), (SERVERS, "5.500")])
def test_a_refused_request_may_leave_its_keys_for_a_lease_if_a_fault_hindered_its_client(
    story, servers, limit
):
    refused(story)
    story.fault("pause", 1000, 1100, ["client-3"])
    assert limits(verdict(story, servers=servers)) == [limit]


def test_its_requests_may_arrive_after_a_cut(story):
    """The cut ends 3.5 s after it was sent."""
    refused(story)
    links = [["client-3", server] for server in SERVERS]
    story.fault("partition", 1200, 4500, ["client-3", *SERVERS], arguments={"links": links})
    assert limits(verdict(story, servers=SERVERS)) == ["12.200"]


def test_a_refused_request_that_no_fault_hindered_leaves_nothing_but_that_lease(story):
    refused(story)
    assert limits(verdict(story, servers=SERVERS)) == ["3.000"]
