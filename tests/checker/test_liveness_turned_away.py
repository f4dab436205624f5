"""A client that gets an error each time it asks for a free lock. Times are in ms; a lease lasts for
1 s, the bound is 2 s, and a client waits for 0.2 s at most in calm."""

from __future__ import annotations

import pytest

from tests.checker.liveness_stories import MINORITY, SERVERS, TTL, asks, verdict

RAISED = ("raised", "ConnectionError: no answer of redis-5")


def turned_away(story, at, *, process=3, took=10, error=RAISED, **more):
    asks(story, at, at + took, process=process, type="info", error=error, **more)


def granted_once(story):
    """From 0.1 s on, the lock is free. The limit is 2.1 s."""
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=100)


def told(story, **test):
    found = verdict(story, **test)
    return [row for row in found.evidence if "got an error" in row["what"]]


def test_a_lock_that_answers_with_errors_is_blamed(story):
    granted_once(story)
    for at in (1000, 2200, 3400):
        turned_away(story, at)
    (row,) = told(story)
    assert row["what"] == (
        "client-3 asked for the lock 2 times from 2.200 s to 3.410 s while no client had it and no "
        "other client asked, and got an error each time (raised): the lock should have been "
        "granted by 2.100 s."
    )
    assert (row["time_ns"], row["valid"], row["ops"]) == (3_410_000_000, False, [6, 9])


@pytest.mark.parametrize("times", [(1000, 3400), (1000, 2100, 3400)])
def test_one_error_after_the_bound_may_be_a_hiccup(story, times):
    granted_once(story)
    for at in times:
        turned_away(story, at)
    assert not told(story)


def test_errors_of_two_clients_may_be_one_of_each_connection(story):
    granted_once(story)
    turned_away(story, 2200)
    turned_away(story, 3400, process=4)
    assert not told(story)
    turned_away(story, 4600, process=4)
    (row,) = told(story)
    assert row["what"].startswith("client-4 asked for the lock 2 times from 3.400 s")


def test_a_grant_between_them_shows_that_the_lock_is_available(story):
    granted_once(story)
    turned_away(story, 2200)
    story.grant(1, "h2", at=3300, until=3300 + TTL)
    story.release(1, "h2", at=3300)
    turned_away(story, 3400)
    turned_away(story, 4600)
    assert not told(story)


def test_others_may_be_refused_the_lock_in_its_lease(story):
    """The first request may hold the lock until 3.21 s."""
    granted_once(story)
    turned_away(story, 2200)
    asks(story, 2215, 2225)
    asks(story, 3200, 3205)
    turned_away(story, 3400)
    assert told(story)


@pytest.mark.parametrize(("second", "blamed"), [(3210, False), (3211, True)])
def test_one_within_the_lease_of_the_first_shows_nothing(story, second, blamed):
    granted_once(story)
    turned_away(story, 2200)
    turned_away(story, second)
    assert bool(told(story)) is blamed


def test_but_it_excuses_nothing(story):
    granted_once(story)
    for at in (2200, 3210, 4300):
        turned_away(story, at)
    (row,) = told(story)
    assert "asked for the lock 2 times from 2.200 s to 4.310 s" in row["what"]


@pytest.mark.parametrize(
    ("at", "done", "blamed"),
    [(3390, 3400, False), (3390, 3399, True), (3410, 3420, False), (3411, 3420, True)],
)
def test_another_client_that_asks_meanwhile_may_be_why(story, at, done, blamed):
    granted_once(story)
    turned_away(story, 2200)
    turned_away(story, 3400)
    asks(story, at, done)
    assert bool(told(story)) is blamed


@pytest.mark.parametrize(
    ("took", "error", "blamed"),
    [
        (10, ("no-quorum", "-"), True),
        (10, ("timeout", "-"), False),
        (199, ("timeout", "-"), False),
        (200, ("timeout", "-"), True),
        (500, ("cancelled", "-"), False),
        (500, ("killed", "-"), False),
    ],
)
def test_a_client_that_gave_up_by_itself_was_not_turned_away(story, took, error, blamed):
    granted_once(story)
    for at in (2200, 4200):
        turned_away(story, at, took=took, error=error)
    assert bool(told(story)) is blamed


def test_a_client_that_reports_the_end_of_its_wait_was_not_turned_away(story):
    granted_once(story)
    for at in (2200, 4200):
        turned_away(story, at)
        over = {"lock": "orders", "hold": None}
        story.op(at + 5, 3, "info", "lost", over, ["expired", "-"])
    assert not told(story)


@pytest.mark.parametrize(
    ("targets", "blamed"), [(["client-3"], False), (["client-1"], True), (SERVERS[:1], False)]
)
def test_nothing_may_be_in_its_way(story, targets, blamed):
    granted_once(story)
    turned_away(story, 2200)
    turned_away(story, 3400)
    story.fault("pause", 3400, 3405, targets)
    assert bool(told(story, servers=SERVERS)) is blamed


@pytest.mark.parametrize(("error", "blamed"), [(RAISED, True), (("timeout", "-"), False)])
def test_a_fault_that_the_lock_promises_to_survive_is_no_excuse(story, error, blamed):
    """The leases that it met are over at 1.3 s. A time-out counts in calm alone."""
    granted_once(story)
    story.fault("kill", 300, 9000, SERVERS[:1])
    for at in (3400, 4700):
        turned_away(story, at, took=250, error=error)
    assert bool(told(story, **MINORITY)) is blamed


def test_holds_take_the_lock_as_ever(story):
    granted_once(story)
    turned_away(story, 2200)
    turned_away(story, 3400)
    story.grant(1, "h2", at=150, until=150 + TTL)
    assert not told(story)
