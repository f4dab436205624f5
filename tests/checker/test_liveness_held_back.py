"""A fault may hold a request back: TCP sends it again. Its lease runs from its arrival."""

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

ONE = {"servers": ["redis-1"]}
CUT = ("partition", {"links": [["client-3", "redis-1"]]})
LOSS = ("packet", {"kind": "loss", "share": 1.0})
PAUSE = ("pause", {})
LATE = "11.200"
"""Sent 3.5 s before a fault ends at 4.5 s, delivered by 8.2 s, with a lease of 1 s."""
CALM = "4.500"


def silence(story):
    """A request without an answer from 1 s to 1.5 s, and another client that asks in vain."""
    asks(story, 1000, 1500, process=3, type="info", error=("timeout", "-"))
    asks_in_vain(story, 2000, STUCK)


@pytest.mark.parametrize(("fault", "limit"), [(CUT, LATE), (LOSS, LATE), (PAUSE, "7.700")])
def test_the_lease_of_a_request_that_a_fault_of_its_client_held_back_runs_from_its_arrival(
    story, fault, limit
):
    silence(story)
    story.fault(fault[0], 500, 4500, ["client-3"], arguments=fault[1])
    assert limits(verdict(story, **ONE)) == [limit]


def test_a_pause_that_begins_after_a_request_has_ended_does_not_hold_it_back(story):
    silence(story)
    story.fault("pause", 1501, 4500, ["client-3"])
    assert limits(verdict(story, **ONE)) == [CALM]


def test_a_lock_that_is_granted_once_that_lease_has_expired_is_not_dead(story):
    asks(story, 1000, 1500, process=3, type="info", error=("timeout", "-"))
    asks_in_vain(story, 2000, 11_100)
    story.grant(1, "h1", at=11_100, until=12_000)
    story.fault("packet", 500, 4500, ["client-3"], arguments=LOSS[1])
    assert verdict(story, **ONE).valid is True


def test_a_request_of_a_client_that_was_killed_behind_a_cut_arrives_after_it(story):
    asks(story, 1000, None, process=3)
    story.fault(CUT[0], 500, 4500, ["client-3", "redis-1"], arguments=CUT[1])
    story.killed(3, 1500, "acquire")
    asks_in_vain(story, 2000, STUCK)
    assert limits(verdict(story, **ONE)) == [LATE]


@pytest.mark.parametrize(("start", "limit"), [(1701, CALM), (1700, "10.700"), (1200, LATE)])
def test_a_request_has_arrived_a_tenth_of_the_bound_after_its_end_unless_a_fault_is_on_by_then(
    story, start, limit
):
    silence(story)
    story.fault("packet", start, 4500, ["client-3"], arguments=LOSS[1])
    assert limits(verdict(story, **ONE)) == [limit]


@pytest.mark.parametrize("node", ["client-4", "client-7"])
def test_a_fault_of_another_client_holds_no_request_back(story, node):
    silence(story)
    story.read(4, 300, None, 0)
    story.fault("packet", 500, 1900, [node], arguments=LOSS[1])
    assert limits(verdict(story, **ONE)) == [CALM]


@pytest.mark.parametrize(
    ("family", "limit"),
    [("pause", "7.500"), ("partition", LATE)],
)
def test_a_fault_of_servers_holds_a_request_back_if_it_drops_messages(story, family, limit):
    links = [["redis-1", "redis-2"], ["redis-1", "client-3"], ["redis-1", "client-7"]]
    silence(story)
    arguments = {"links": links} if family == "partition" else {}
    story.fault(family, 500, 4500, ["redis-1"], arguments=arguments)
    assert limits(verdict(story, servers=SERVERS)) == [limit]


def test_a_fault_that_the_lock_promises_to_survive_holds_no_request_back(story):
    links = [["redis-1", "redis-2"], ["redis-1", "client-3"], ["redis-1", "client-7"]]
    silence(story)
    story.fault("partition", 500, 4500, ["redis-1"], arguments={"links": links})
    assert limits(verdict(story, **MINORITY)) == ["7.500"]


def extends(story, **outcome):
    story.grant(1, "h1", at=0, until=TTL)
    story.extend(1, "h1", 500, None, **outcome)
    asks_in_vain(story, 600, STUCK)


@pytest.mark.parametrize(("end", "limit"), [(300, "3.500"), (800, "4.000"), (600, "3.900")])
def test_an_extend_that_a_fault_held_back_prolongs_the_lease_if_it_arrives_before_its_end(
    story, end, limit
):
    """It was sent at 0.5 s, the lease ends at 1 s. It arrives by 0.9 s or 1.3 s."""
    extends(story, type="info")
    story.fault("packet", 299, end, ["client-1"], arguments=LOSS[1])
    assert limits(verdict(story, **ONE)) == [limit]


@pytest.mark.parametrize(
    ("kind", "servers", "limit"),
    [
        ("no-quorum", SERVERS, "3.500"),
        ("no-quorum", SERVERS[:1], "3.000"),
        ("not-held", SERVERS, "3.000"),
        ("unreachable", SERVERS, "3.000"),
    ],
)
def test_an_extend_that_failed_for_lack_of_answers_may_have_reached_each_server(
    story, kind, servers, limit
):
    extends(story, type="fail", kind=kind)
    assert limits(verdict(story, servers=servers)) == [limit]


def test_an_extend_that_lacked_answers_behind_a_cut_may_arrive_after_it(story):
    links = [["client-1", server] for server in SERVERS]
    extends(story, type="fail", kind="no-quorum")
    story.fault("partition", 450, 800, ["client-1", *SERVERS], arguments={"links": links})
    assert limits(verdict(story, servers=SERVERS)) == ["4.000"]


def given_up(story, begin, end, error=("timeout", "-")):
    asks(story, begin, end, process=3, type="info", error=error)
    story.grant(2, "h2", asked=end + 1100, at=end + 1200, until=end + 2000)


@pytest.mark.parametrize(("end", "valid"), [(2200, True), (2201, False)])
def test_a_request_that_is_given_up_in_calm_was_granted_shortly_before_if_at_all(story, end, valid):
    given_up(story, 0, end)
    assert verdict(story, **ONE).valid is valid


def test_a_request_of_a_client_that_died_may_have_been_granted_at_any_time(story):
    given_up(story, 0, 6000, error=("killed", "-"))
    assert verdict(story, **ONE).valid is True


@pytest.mark.parametrize("node", ["client-3", "redis-1"])
@pytest.mark.parametrize(("begin", "valid"), [(5999, True), (6001, False)])
def test_so_may_one_after_a_fault_that_ended_more_recently_than_it_was_on_for(
    story, begin, valid, node
):
    story.fault("pause", 0, 3000, [node])
    given_up(story, begin, begin + 6000)
    assert verdict(story, **ONE).valid is valid


def test_so_may_one_of_a_client_that_asks_each_server_by_itself(story):
    given_up(story, 0, 6000)
    assert verdict(story, servers=SERVERS).valid is True
