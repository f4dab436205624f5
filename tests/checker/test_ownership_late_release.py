"""A release that reaches the service after its own hold must not end another's."""

from __future__ import annotations

import pytest

from tests.checker.ownership_stories import lapsed_then_granted, verdict
from tests.histories import MS, kept_on, over


def test_a_late_release_that_lets_a_third_in_is_theft(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    found = verdict(story)
    assert found.valid is False
    assert found.evidence == [
        {
            "what": (
                "client-1 (process 1) released its hold h1 at 1.600 s and was answered ok, though "
                "client-2 (process 2) had hold h2 since 1.500 s; that hold then ended "
                "early: client-3 (process 3) was granted hold h3. The lease of hold h1 expired at "
                "1.000 s. No fault explains why client-1 (process 1) had not given it up 0.600 s "
                "later."
            ),
            "cause": [over("h1", 1000), kept_on(1, 1000, 1600)],
            "time_ns": 1600 * MS,
            "lock": "orders",
            "holds": ["h1", "h2"],
            "ops": [4, 5],
        }
    ]


@pytest.mark.parametrize(("type", "valid"), [("ok", False), ("info", "unknown")])
def test_of_two_releases_that_may_have_ended_a_hold_the_first_is_named(story, type, valid):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(3, "h3", at=1100, until=1400)
    story.grant(2, "h2", at=1500, until=2500)
    story.release(1, "h1", at=1550, type=type)
    story.release(3, "h3", at=1560, type=type)
    story.grant(4, "h4", at=1700, until=2700)
    found = verdict(story)
    assert found.valid == valid
    assert [row["holds"] for row in found.evidence] == [["h1", "h2"]]


def test_a_late_release_after_which_the_holder_s_own_extend_is_refused_is_theft(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=None, type="fail")
    found = verdict(story)
    assert found.valid is False
    assert "its own extend was refused" in found.evidence[0]["what"]


def test_a_late_release_after_which_the_holder_s_own_release_is_refused_is_theft(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.release(2, "h2", at=1700, type="fail")
    assert verdict(story).valid is False


def test_a_release_sent_late_and_long_under_way_is_theft_where_it_arrived_after_the_grant(story):
    """Its lease had expired before the other even asked: it had nothing left to release."""
    lapsed_then_granted(story)
    story.release(1, "h1", at=1400, done=1600)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid is False


def test_a_late_release_that_is_refused_accuses_no_client(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600, type="fail")
    story.grant(3, "h3", at=1700, until=2700)
    story.release(3, "h3", at=1800)
    assert verdict(story).valid is True


def test_a_late_release_after_which_the_other_still_holds_the_lock_is_no_theft(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=2700)
    story.release(2, "h2", at=1800)
    story.grant(3, "h3", at=1900, until=2900)
    assert verdict(story).valid is True


def test_a_double_grant_by_the_service_is_not_blamed_on_the_first_holder_s_release(story):
    """1 releases its current hold; the service is to blame for the second grant to 2."""
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=500, until=1500)
    story.release(1, "h1", at=600)
    story.grant(3, "h3", at=700, until=1700)
    assert verdict(story).valid is True


def test_a_third_grant_before_the_late_release_is_blamed_on_the_service(story):
    lapsed_then_granted(story)
    story.grant(3, "h3", at=1550, until=2550)
    story.release(1, "h1", at=1600)
    assert verdict(story).valid is True


def test_a_right_release_whose_answer_came_late_is_not_blamed(story):
    """Sent in time, it let 2 in; its answer arrived when 2 had the lock, which 2 then lost."""
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=500, done=800)
    story.grant(2, "h2", asked=550, at=600, until=1600)
    story.extend(2, "h2", at=900, until=None, type="fail")
    assert verdict(story).valid is True


def test_a_hold_that_its_holder_gave_up_is_not_stolen_when_it_asks_for_it_again(story):
    """2 released, and is refused later, as it must be: its own release ended its hold."""
    lapsed_then_granted(story)
    story.release(2, "h2", at=1550)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is True


def test_another_lock_s_holder_is_not_the_victim(story):
    story.grant(1, "h1", at=0, until=1000, lock="a")
    story.grant(2, "h2", at=1500, until=2500, lock="b")
    story.release(1, "h1", at=1600, lock="a")
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is True


def test_a_second_release_of_one_hold_is_theft_also_while_its_first_lease_would_still_run(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100)
    story.grant(2, "h2", at=200, until=1200)
    story.release(1, "h1", at=300)
    story.grant(3, "h3", at=400, until=1400)
    found = verdict(story)
    assert found.valid is False
    assert found.evidence[0]["ops"] == [6, 7]


def test_a_first_release_that_was_refused_ended_the_hold_unless_the_test_says_otherwise(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, type="fail", kind="no-quorum")
    story.grant(2, "h2", at=200, until=1200)
    story.release(1, "h1", at=300)
    story.grant(3, "h3", at=400, until=1400)
    assert verdict(story).valid is False
    assert verdict(story, failed_release="nothing").valid is True


def test_a_release_by_a_client_that_learned_that_its_hold_is_lost_is_theft(story):
    story.grant(1, "h1", at=0, until=1000)
    story.op(100, 1, "info", "lost", {"lock": "orders", "hold": "h1"}, ["lost", "-"])
    story.grant(2, "h2", at=200, until=1200)
    story.release(1, "h1", at=300)
    story.grant(3, "h3", at=400, until=1400)
    assert verdict(story).valid is False


def test_a_lease_expires_at_its_deadline(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", asked=990, at=1000, until=2000)
    story.release(1, "h1", at=1001, done=1002)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid is False


@pytest.mark.parametrize("hold", [None, "h9", "h2"])
def test_a_loss_of_another_hold_does_not_end_this_one(story, hold):
    """Null: the client lost the session with which it waits for a grant."""
    story.grant(1, "h1", at=0, until=1000)
    story.op(100, 1, "info", "lost", {"lock": "orders", "hold": hold}, ["lost", "-"])
    story.grant(2, "h2", at=200, until=1200)
    story.release(1, "h1", at=300)
    story.grant(3, "h3", at=400, until=1400)
    assert verdict(story).valid is True


def test_a_release_checked_in_time_and_carried_out_when_another_has_the_lock_is_theft(story):
    """Get, a pause past the lease, then delete: the release started during its own hold."""
    story.grant(1, "h1", at=0, until=1000)
    story.fault("pause", 20, 1100, ["client-1"])
    story.grant(2, "h2", at=1050, until=2050)
    story.release(1, "h1", at=10, done=1100)
    story.grant(3, "h3", at=1110, until=2110)
    assert verdict(story).valid is False


def test_a_release_answered_before_the_other_asked_ended_nothing_of_it(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=1200)
    story.grant(2, "h2", at=1300, until=2300)
    story.extend(2, "h2", at=1400, until=None, type="fail")
    assert verdict(story).valid is True


def test_a_release_sent_after_the_loss_did_not_cause_it(story):
    lapsed_then_granted(story)
    story.extend(2, "h2", at=1600, until=None, type="fail")
    story.release(1, "h1", at=1700)
    assert verdict(story).valid is True


def test_a_release_in_the_instant_of_an_extension_is_of_the_hold_as_extended(story):
    lapsed_then_granted(story)
    story.extend(1, "h1", at=1700, until=2700)
    story.release(1, "h1", at=1700)
    story.grant(3, "h3", at=1800, until=2800)
    assert verdict(story).valid is True


def test_a_release_that_names_a_hold_before_its_grant_steals_nothing(story):
    story.release(1, "h1", at=0)
    story.grant(1, "h1", at=10, until=1000)
    assert verdict(story).valid is True


def test_a_process_does_not_steal_from_itself(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(1, "h2", at=1500, until=2500)
    story.release(1, "h1", at=1600)
    story.extend(1, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is True
