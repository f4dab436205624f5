"""The lock's ops against the lease-mutex model, with leases as the client may count on them."""

from __future__ import annotations

import pytest
from histories import MS, Story

from checker.exclusion import lease_exclusion
from checker.linearizable import linearizable


@pytest.fixture
def story():
    return Story()


def verdict(story, **test):
    return linearizable(story.history(), test)


def renewed(story, process, hold, at, until):
    value = {"lock": "orders", "hold": hold, "deadline": until * MS}
    story.op(at, process, "info", "renewed", value)


def expired(story, process, at):
    story.op(at, process, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "gone"])


def test_without_a_grant_nothing_was_tested(story):
    story.denied(0, 1, 2)
    assert verdict(story).valid == "unknown"


def test_turns_are_valid(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 5)
    story.grant(1, "b", 6, 1006)
    assert verdict(story).valid is True


def test_a_grant_within_another_s_lease_fits_nowhere_and_the_sentence_says_why(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500)
    found = verdict(story)
    assert found.valid is False
    assert "client-1 (process 1)" in found.summary
    assert "fits nowhere" in found.summary
    assert found.evidence[0]["ops"]


def test_a_grant_after_the_lease_is_fine(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 1500, 2500, asked=1400)
    assert verdict(story).valid is True


def test_a_session_that_was_heard_of_earlier_may_end_earlier(story):
    """Its deadline is 0.3 s after the grant although a lease of 1 s was asked for."""
    story.grant(0, "a", 1, 301)
    story.grant(1, "b", 500, 1500, asked=450)
    assert verdict(story).valid is True


@pytest.mark.parametrize(("killed", "valid"), [([0], True), ([1], False), ([], False)])
def test_the_lease_of_a_client_that_was_killed_may_end_with_it(story, killed, valid):
    story.grant(0, "a", 1, 1001)
    story.fault("kill", 300, 900, ["client-0"], processes=killed)
    story.grant(1, "b", 500, 1500, asked=450)
    assert verdict(story).valid is valid


def test_a_grant_before_a_client_was_killed_is_within_its_lease(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 200, 1200)
    story.fault("kill", 300, 900, ["client-0"], processes=[0])
    assert verdict(story).valid is False


def test_where_no_deadline_can_be_seen_the_grant_may_end_at_any_time(story):
    story.grant(0, "a", 1, None)
    story.grant(1, "b", 500, None, asked=450)
    assert verdict(story).valid is True


def test_a_renewal_in_the_background_makes_the_lease_longer(story):
    story.grant(0, "a", 1, 1001)
    renewed(story, 0, "a", 800, 1800)
    story.grant(1, "b", 1500, 2500, asked=1400)
    assert verdict(story).valid is False
    assert lease_exclusion(story.history(), {}).valid is False


def test_a_renewal_that_came_too_late_does_not(story):
    story.grant(0, "a", 1, 1001)
    renewed(story, 0, "a", 1200, 2200)
    story.grant(1, "b", 1500, 2500, asked=1400)
    assert verdict(story).valid is True


def waiter(story, released):
    story.grant(0, "a", 1, 5001, ttl=5000)
    story.release(0, "a", released)
    story.grant(1, "b", released + 10, 1010, asked=10)


def test_a_grant_in_the_name_of_a_lease_that_was_over_by_then_fits_nowhere(story):
    """etcd issue 11456: its lease was over before the lock was free."""
    waiter(story, 2500)
    expired(story, 1, 2000)
    assert verdict(story).valid is False


def test_it_may_have_been_given_before(story):
    waiter(story, 1500)
    expired(story, 1, 2000)
    story.release(1, "b", 2600)
    assert verdict(story).valid is True


@pytest.mark.parametrize(("meaning", "valid"), [("ended", True), ("nothing", False)])
def test_a_failed_release_means_what_the_test_says(story, meaning, valid):
    story.grant(0, "a", 1, 5001, ttl=5000)
    story.release(0, "a", 10, type="fail")
    story.grant(1, "b", 20, 5020, ttl=5000)
    assert verdict(story, failed_release=meaning).valid is valid
