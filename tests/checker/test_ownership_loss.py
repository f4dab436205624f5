"""A refusal or a conflicting grant proves that a hold ended early."""

from __future__ import annotations

import pytest

from tests.checker.ownership_stories import CLOCKS, lapsed_then_granted, verdict


def test_a_hold_that_ended_with_its_client_was_not_stolen(story):
    """The client of 2 closes its session, and the service grants the lock to another at once."""
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.call(2, "close", 1650, 1660, {})
    story.grant(3, "h3", at=1700, until=2700)
    for kind in ("close", "connection"):
        assert verdict(story, lock={"ends_with": kind}).valid is True


def test_a_refusal_after_the_service_may_have_ended_the_hold_proves_nothing(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.fault("partition", 1650, 1800, ["client-2"], arguments={"links": [["client-2", "s1"]]})
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story, lock={"ends_with": "lease"}).valid is False
    assert verdict(story, lock={"ends_with": "connection"}).valid is True


def test_a_grant_after_the_lease_expired_proves_no_loss(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=2500, until=3500)
    assert verdict(story).valid is True


@pytest.mark.parametrize("done", [2499, 2500])
def test_a_refusal_proves_a_loss_only_before_the_lease_expires(story, done):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    asked, error = {"lock": "orders", "hold": "h2"}, ["not-held", "it is gone"]
    story.call(2, "extend", 2400, done, asked, type="fail", error=error)
    assert verdict(story).valid is (done == 2500)


@pytest.mark.parametrize(
    ("type", "error"), [("fail", ["no-quorum", "-"]), ("fail", None), ("info", ["not-held", "-"])]
)
def test_an_answer_that_does_not_say_that_the_hold_ended_proves_no_loss(story, type, error):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    asked = {"lock": "orders", "hold": "h2"}
    story.call(2, "extend", 1700, 1700, asked, type=type, error=error)
    assert verdict(story).valid is True


def test_a_refusal_by_a_client_that_knows_of_its_loss_proves_nothing(story):
    """A library refuses so by itself; the reason for its lost session is unknown."""
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.op(1650, 2, "info", "lost", {"lock": "orders", "hold": "h2"}, ["lost", "-"])
    story.release(2, "h2", at=1640, done=1700, type="fail")
    assert verdict(story).valid is True


def test_a_refusal_after_the_holder_closed_its_client_proves_nothing(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.call(2, "close", 1650, 1660, {})
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is True


def test_the_grants_of_readers_say_nothing_about_a_reader_s_hold(story):
    story.grant(1, "h1", at=0, until=1000, shared=True)
    story.grant(2, "h2", at=1500, until=2500, shared=True)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700, shared=True)
    assert verdict(story).valid is True
    story.grant(4, "h4", at=1800, until=2800)
    found = verdict(story)
    assert found.valid is False
    assert [row["holds"] for row in found.evidence] == [["h1", "h2"]]
    assert "client-4 (process 4) was granted hold h4" in found.evidence[0]["what"]


def test_a_reader_s_late_release_is_theft_also_of_a_hold_that_started_during_its_own(story):
    story.grant(1, "h1", at=0, until=1000, shared=True)
    story.grant(2, "h2", at=500, until=2500, shared=True)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is False


@pytest.mark.parametrize(("token", "valid"), [(None, True), (2, True), (4, False)])
def test_a_grant_that_may_have_come_before_proves_no_loss(story, token, valid):
    """The lease of 3 had expired when 2 was granted the lock: only its answer came late."""
    story.grant(1, "h1", at=0, until=400, token=1)
    story.grant(2, "h2", at=1500, until=2500, token=3)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", asked=450, at=1700, until=1450, token=token)
    assert verdict(story).valid is valid


def test_a_grant_whose_lease_ran_when_the_other_was_granted_proves_that_one_of_both_was_lost(
    story,
):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", asked=1400, at=1700, until=2400)
    assert verdict(story).valid is False


@pytest.mark.parametrize(("until", "valid"), [(1508, True), (1509, False)])
def test_such_a_lease_ran_then_only_beyond_the_bounds_of_both_clocks(story, until, valid):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", asked=1400, at=1700, until=until)
    assert verdict(story, **CLOCKS).valid is valid


def test_tokens_that_fell_within_the_bounds_of_clocks_still_tell_the_order_of_grants(story):
    story.grant(1, "h1", at=0, until=400, token=1)
    story.grant(3, "h0", at=5, until=300, token=0)
    story.grant(2, "h2", at=1500, until=2500, token=3)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", asked=450, at=1700, until=1450, token=4)
    assert verdict(story).valid is True
    assert verdict(story, **CLOCKS).valid is False


def test_a_second_grant_to_the_same_process_proves_no_loss(story):
    """The lock may be reentrant."""
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(2, "h3", at=1700, until=2700)
    assert verdict(story).valid is True


def test_a_grant_while_the_lease_had_expired_proves_no_loss_though_it_was_extended_later(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=2600, until=2700)
    story.extend(2, "h2", at=2800, until=3800)
    assert verdict(story).valid is True
    story.release(1, "h1", at=2850)
    story.grant(4, "h4", at=2900, until=3900)
    assert verdict(story).valid is False


def test_a_lease_that_expired_before_its_grant_arrived_starts_with_its_extension(story):
    """3 held the lock between the two, rightly."""
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", asked=1100, at=1500, until=1200)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=2700)
    story.grant(3, "h3", asked=1650, at=1800, until=1900)
    assert verdict(story).valid is True


@pytest.mark.parametrize(("asked", "valid"), [(1708, True), (1709, False)])
def test_a_grant_was_asked_for_in_a_later_lease_only_beyond_the_bounds(story, asked, valid):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", asked=1100, at=1500, until=1200)
    story.release(1, "h1", at=1600, done=1700)
    story.extend(2, "h2", at=1700, until=2700)
    story.grant(3, "h3", asked=asked, at=1800, until=1900)
    assert verdict(story, **CLOCKS).valid is valid


@pytest.mark.parametrize(("at", "stolen"), [(1599, True), (1600, True), (1601, False)])
def test_a_hold_that_was_extended_after_a_late_release_outlived_it(story, at, stolen):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=at, until=2500)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid is not stolen


@pytest.mark.parametrize(("at", "stolen"), [(1608, True), (1609, False)])
def test_a_hold_outlived_a_release_only_beyond_the_bounds_of_both_clocks(story, at, stolen):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=at, until=2500)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story, **CLOCKS).valid is not stolen


def test_an_extend_shows_only_by_an_ok_that_the_hold_was_not_gone(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1650, until=None, type="fail", kind="no-quorum")
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid is False


@pytest.mark.parametrize(("at", "stolen"), [(1700, False), (1701, True)])
def test_an_extend_that_was_sent_after_the_loss_says_nothing_about_it(story, at, stolen):
    """The lock may have been granted to it again."""
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    story.extend(2, "h2", at=at, until=2700)
    assert verdict(story).valid is not stolen


def test_a_hold_outlived_no_release_of_unknown_outcome(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600, type="info")
    story.extend(2, "h2", at=1650, until=2500)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid == "unknown"
