"""Until when the rest of a hold or a request can block a grant."""

from __future__ import annotations

import pytest

from fencepost.checker.facts.faults import faults
from fencepost.checker.facts.hold_events import hold_events
from fencepost.checker.facts.holds import holds
from fencepost.checker.facts.obstacles import (
    Obstacles,
    Request,
    freed,
    impairing,
    kills_clients,
    lease_of,
    left,
    longest_lease,
    request,
)
from tests.histories import MS


def arrived(call):
    extends = call.begin.f == "extend" and call.type == "info"
    return (call.end or call.begin).time if extends else None


def remains(story, leases):
    """Return when each hold, by name, stops blocking, in ms."""
    history = story.history()
    found = holds(history)
    events = hold_events(history, found).own
    over = left(found, events, leases, freed(events, lambda call: True), arrived)
    return {hold.name: over[hold.index] / MS for hold in found}


def test_a_release_ends_the_hold_that_it_names_and_not_the_latest(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(1, "h2", at=10, until=1010)
    story.release(1, "h1", at=20, done=30)
    assert remains(story, {}) == {"h1": 30, "h2": 1010}


def test_a_release_without_a_name_ends_the_latest_hold_of_its_lock(story):
    for at, lock in ((0, "orders"), (10, "orders"), (15, "other")):
        asked = {"lock": lock, "ttl": 1000 * MS}
        story.call(1, "acquire", at, at, asked, {"deadline": (at + 1000) * MS})
    story.call(1, "release", 20, 30, {"lock": "orders"})
    assert sorted(remains(story, {}).values()) == [30, 1000, 1015]


@pytest.mark.parametrize(("leases", "over"), [({"orders": 500 * MS, "": 7}, 600), ({}, 100)])
def test_a_hold_that_names_no_lease_has_that_of_its_lock(story, leases, over):
    story.call(1, "acquire", 0, 0, {"lock": "orders"}, {"hold": "h1", "deadline": None})
    story.call(1, "close", 100, 110, {})
    assert remains(story, leases) == {"h1": over}


def test_an_acquire_that_names_no_lease_asks_for_none(story):
    story.call(1, "acquire", 0, None, {"lock": "orders"})
    (call,) = story.history().calls()
    assert (lease_of(call), longest_lease([call]), longest_lease([])) == (0, 0, 0)
    assert request(call, {}, 0, {}).died is False


def test_a_fault_that_killed_all_clients_did_nothing_else(story):
    story.fault("kill", 100, 200, ["client-1", "client-2"], processes=[1, 2])
    (fault,) = faults(story.history())
    assert kills_clients(fault, frozenset({"client-1", "client-2"})) is True
    assert kills_clients(fault, frozenset({"client-1"})) is False


def test_a_hold_that_names_its_lease_has_that_one_and_not_that_of_its_lock(story):
    story.grant(1, "h1", at=0, until=None, ttl=200)
    story.call(1, "close", 100, 110, {})
    assert remains(story, {"orders": 500 * MS}) == {"h1": 300}


@pytest.mark.parametrize(("ttl", "over"), [(1300, 1500), (1100, 1400), (None, 1300)])
def test_a_longer_lease_may_run_from_the_arrival_of_its_request(story, ttl, over):
    story.grant(1, "h1", at=0, until=1000)
    asked = {"lock": "orders", "hold": "h1", "ttl": None if ttl is None else ttl * MS}
    story.call(1, "extend", 100, 300, asked, {"deadline": 1300 * MS})
    story.call(1, "extend", 400, 500, asked, type="fail", error=["no-quorum", "-"])
    assert remains(story, {}) == {"h1": over}


@pytest.mark.parametrize(("leases", "over"), [({}, 1100), ({"orders": 500 * MS}, 1000)])
def test_so_may_a_lease_whose_length_only_the_lock_knows(story, leases, over):
    asked = {"lock": "orders"}
    story.call(1, "acquire", 0, 100, asked, {"hold": "h1", "deadline": 1000 * MS})
    assert remains(story, leases) == {"h1": over}


@pytest.mark.parametrize(
    ("begin", "end", "ttl", "over"),
    [(600, 700, 500, 1200), (600, 700, 100, 1000), (1100, 1200, 500, 1700)],
)
def test_an_extend_of_unknown_outcome_may_have_begun_its_lease_by_its_end(
    story, begin, end, ttl, over
):
    story.grant(1, "h1", at=0, until=1000)
    asked = {"lock": "orders", "hold": "h1", "ttl": ttl * MS}
    story.call(1, "extend", begin, end, asked, type="info", error=["timeout", "-"])
    assert remains(story, {}) == {"h1": over}


def test_several_of_unknown_outcome_may_have_arrived_at_once(story):
    story.grant(1, "h1", at=0, until=1000)
    for ttl in (500, 400):
        asked = {"lock": "orders", "hold": "h1", "ttl": ttl * MS}
        story.call(1, "extend", 700, 700, asked, type="info", error=["timeout", "-"])
    assert remains(story, {}) == {"h1": 1200}


def test_an_extend_that_never_returned_may_have_begun_its_lease(story):
    story.grant(1, "h1", at=0, until=1000)
    story.call(1, "extend", 600, None, {"lock": "orders", "hold": "h1", "ttl": 500 * MS})
    assert remains(story, {}) == {"h1": 1100}


def test_a_request_that_was_granted_waited_until_then(story):
    story.op(10, 1, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    story.call(1, "acquire", 0, 20, {"lock": "orders"}, {"hold": "h1"})
    history = story.history()
    (call,) = history.calls()
    notices = {1: list(history.lost())}
    assert request(call, {}, 9, notices) == Request(0, 20 * MS, 0, False, 20 * MS)


def test_a_client_that_was_killed_in_an_open_request_asked_until_then(story):
    story.call(1, "acquire", 0, None, {"lock": "orders"})
    (call,) = story.history().calls()
    found = request(call, {1: (5, 9)}, 50, {})
    assert (found, found.died) == (Request(0, 9, 59, True, 9), True)


def test_a_client_whose_wait_has_ended_has_its_request_open_until_it_is_answered(story):
    story.op(10, 1, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    story.call(1, "acquire", 0, None, {"lock": "orders"})
    history = story.history()
    (call,) = history.calls()
    notices = {1: list(history.lost())}
    never = float("inf")
    assert request(call, {}, 9, notices) == Request(0, 10 * MS, 0, False, never)
    assert request(call, {1: (15 * MS, 20 * MS)}, 9, notices).open_until == 20 * MS


def test_only_faults_that_keep_nodes_from_answering_impair(story):
    story.fault("kill", 0, 10, ["client-1"], processes=[1])
    story.fault("clock", 0, 20, ["redis-1"])
    story.fault("pause", 0, 30, ["redis-1"])
    story.fault("gremlin", 0, 40, ["redis-1"])
    found = impairing(faults(story.history()), frozenset({"client-1"}))
    assert [fault.family for fault in found] == ["pause"]


def test_a_report_of_an_earlier_wait_does_not_end_a_later_one(story):
    story.op(10, 1, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    story.call(1, "acquire", 20, None, {"lock": "orders"})
    history = story.history()
    (call,) = history.calls()
    assert request(call, {}, 0, {1: list(history.lost())}).asked_until == float("inf")


def test_a_free_span_ends_where_the_next_obstacle_begins():
    found = Obstacles([(0, 5), (100, 110)])
    assert found.free(0, 10) == (5, 100)
    assert found.free(0, 95) == (110, float("inf"))


@pytest.mark.parametrize(
    ("type", "error", "over", "died"),
    [
        ("ok", None, 0, False),
        ("fail", ["not-granted", "no"], 0, False),
        ("info", ["timeout", "killed"], 70, False),
        ("info", ["killed", "the worker is gone"], 70, True),
        ("info", ["crashed", "the worker is gone"], 70, True),
    ],
)
def test_a_request_says_whether_its_client_died_in_it(story, type, error, over, died):
    asked = {"lock": "orders", "ttl": 50 * MS}
    story.call(1, "acquire", 0, 20, asked, {"hold": "h1"}, type, error)
    (call,) = story.history().calls()
    found = request(call, {}, 9, {})
    assert found == Request(0, 20 * MS, over * MS, died, 20 * MS)
    assert found.died is died
