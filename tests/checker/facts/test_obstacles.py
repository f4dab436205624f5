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
    assert found == Request(0, 20 * MS, over * MS, died)
    assert found.died is died
