"""The lock's ops against the lease-mutex model, with leases as the client may count on them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.checker.exclusion import lease_exclusion
from fencepost.checker.history.history import History
from fencepost.checker.linearizable import linearizable
from tests.checker.linearizable_stories import CLOCKS, renewed, verdict
from tests.histories import MS


def test_without_a_grant_nothing_was_tested(story):
    story.denied(0, 1, 2)
    assert verdict(story).valid == "unknown"


def test_alternating_holds_are_valid(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 5)
    story.grant(1, "b", 6, 1006)
    found = verdict(story, lock={"ends_with": "close"})
    assert found.valid is True
    assert found.summary == "3 ops of the lock fit one order that respects every lease."
    assert found.evidence == []
    assert found.details == {
        "model": "lease-mutex",
        "operations": 3,
        "failed_release": "ended",
        "ends_with": "close",
        "untested": [],
    }


def test_a_grant_within_another_s_lease_is_not_linearizable_and_the_sentence_says_why(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1500)
    found = verdict(story)
    assert found.valid is False
    assert "client-1 (process 1)" in found.summary
    assert "is not linearizable" in found.summary
    assert found.evidence[0]["ops"]


def test_a_grant_after_the_lease_is_fine(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 1500, 2500, asked=1400)
    assert verdict(story).valid is True


def test_a_session_whose_deadline_is_reported_earlier_may_end_earlier(story):
    """Its deadline is 0.3 s after the grant although the client asked for a lease of 1 s."""
    story.grant(0, "a", 1, 301)
    story.grant(1, "b", 500, 1500, asked=450)
    assert verdict(story).valid is True


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


def test_renewals_after_an_extend_make_its_lease_longer(story):
    story.grant(0, "a", 1, 1001)
    story.extend(0, "a", 900, 1900)
    renewed(story, 0, "a", 1800, 2800)
    story.grant(1, "b", 2500, 3500, asked=2400)
    assert verdict(story).valid is False


def test_a_renewal_before_an_extend_that_shortens_the_lease_counts_no_more(story):
    story.grant(0, "a", 1, 1001)
    renewed(story, 0, "a", 500, 1500)
    story.call(
        0,
        "extend",
        600,
        601,
        {"lock": "orders", "hold": "a", "ttl": 100 * MS},
        {"deadline": 700 * MS},
    )
    story.grant(1, "b", 800, 1800, asked=750)
    assert verdict(story).valid is True


def test_a_renewal_that_shows_no_deadline_says_nothing(story):
    story.grant(0, "a", 1, 1001)
    value = {"lock": "orders", "hold": "a", "deadline": None}
    story.op(800, 0, "info", "renewed", value)
    story.grant(1, "b", 1100, 2100, asked=1050)
    assert verdict(story).valid is True


def test_an_extend_answered_ok_after_another_was_granted_the_lock_is_not_linearizable(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 1200, 2200, asked=1100)
    story.release(1, "b", 1300)
    story.extend(0, "a", 1400, 2400)
    assert verdict(story).valid is False


def test_shared_holds_have_no_model_with_leases(story):
    value = {"lock": "orders", "ttl": 1000 * MS, "mode": "shared"}
    story.call(0, "acquire", 0, 1, value, {"hold": "a", "token": None, "deadline": 1000 * MS})
    story.call(1, "acquire", 2, 3, value, {"hold": "b", "token": None, "deadline": 1000 * MS})
    assert verdict(story).valid == "unknown"


def test_a_shared_hold_leaves_only_its_own_lock_without_a_verdict(story):
    story.grant(0, "a", 1, 1001, shared=True)
    story.grant(1, "b", 2, 1002, lock="invoices")
    assert verdict(story).valid == "unknown"
    story.grant(2, "c", 500, 1500, lock="invoices")
    found = verdict(story)
    assert found.valid is False
    assert "hold c" in found.summary


def test_a_double_grant_of_a_lock_with_shared_holds_is_left_to_other_checkers(story):
    story.grant(0, "a", 1, 1001, shared=True)
    story.grant(1, "b", 2, 1002)
    story.grant(2, "c", 500, 1500)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary == "There is no model of shared holds with leases."


@pytest.mark.parametrize(("released", "valid"), [(507, True), (509, False)])
def test_a_release_is_before_a_grant_as_far_as_the_clocks_may_be_off(story, released, valid):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", released)
    story.grant(1, "b", 500, 1500, asked=450)
    assert verdict(story, clocks=CLOCKS).valid is valid


@pytest.mark.parametrize(("granted", "valid"), [(992, False), (994, True)])
def test_a_lease_may_have_expired_within_the_bounds_of_the_clocks(story, granted, valid):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", granted, 2500, asked=450)
    assert verdict(story, clocks=CLOCKS).valid is valid


def test_a_release_that_may_have_come_after_the_next_grant_does_not_make_its_lease_last(story):
    """Neither op names its hold."""
    asked = {"lock": "orders", "ttl": 1000 * MS}
    story.call(0, "acquire", 1, 1, asked, {"deadline": 1001 * MS})
    story.call(0, "release", 100, 100, {"lock": "orders"})
    story.call(0, "acquire", 102, 104, asked, {"deadline": 1104 * MS})
    story.call(1, "acquire", 1400, 1500, asked, {"deadline": 2500 * MS})
    assert verdict(story, clocks=CLOCKS).valid is True


def unnamed(story, process, hold, at):
    """A grant that names no lease and no end of it."""
    story.call(process, "acquire", at, at, {"lock": "orders"}, {"hold": hold, "deadline": None})


def test_a_grant_that_names_no_lease_lasts_until_it_is_released(story):
    unnamed(story, 0, "a", 1)
    story.release(0, "a", 5)
    unnamed(story, 1, "b", 6)
    assert verdict(story).valid is True
    assert verdict(story).details["untested"] == []
    unnamed(story, 2, "c", 10_000)
    assert verdict(story).valid is False


@pytest.mark.parametrize(("ends_with", "valid"), [("close", True), ("lease", False)])
def test_a_grant_that_names_no_lease_may_end_with_its_client(story, ends_with, valid):
    unnamed(story, 0, "a", 1)
    story.call(0, "close", 100, 110, {})
    unnamed(story, 1, "b", 120)
    assert verdict(story, lock={"ends_with": ends_with}).valid is valid


def test_a_renewal_in_the_instant_in_which_an_extend_is_answered_makes_that_one_last(story):
    story.grant(0, "a", 1, 1001)
    story.extend(0, "a", 100, 1100)
    renewed(story, 0, "a", 100, 1500)
    story.grant(1, "b", 1200, 2200)
    assert verdict(story).valid is False


def test_with_one_client_exclusion_is_named_as_untested(story):
    story.grant(0, "a", 1, None)
    found = verdict(story)
    assert found.valid is True
    assert found.details["untested"] == [
        "two clients that want one lock",
        "a lease that the client can see",
    ]
    assert found.summary.endswith(
        "Not tested: two clients that want one lock, a lease that the client can see."
    )


def test_a_client_that_continues_as_another_process_is_the_same_client(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 5)
    story.grant(1, "b", 6, 1006)
    history = History([replace(op, node="client-1") for op in story.history()])
    assert linearizable(history, {}).details["untested"] == ["two clients that want one lock"]
