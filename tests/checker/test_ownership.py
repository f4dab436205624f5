"""A process that ends another's hold is named; nobody is blamed for what the service did."""

from __future__ import annotations

import pytest
from histories import Story

from checker.ownership import ownership


@pytest.fixture
def story():
    return Story()


def verdict(story):
    return ownership(story.history(), {})


def lapsed_then_granted(story, granted_at=1500):
    """1 let its lease run out; 2 has been granted the lock since."""
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=granted_at, until=granted_at + 1000)


def test_a_release_of_another_process_hold_is_theft(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(2, "h1", at=100)
    found = verdict(story)
    assert found.valid is False
    assert (
        "process 2 released hold h1 of client-1 (process 1) at 0.100 s"
        in (found.evidence[0]["what"])
    )


def test_a_release_of_another_process_hold_that_is_refused_is_not(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(2, "h1", at=100, type="fail")
    story.release(1, "h1", at=200)
    assert verdict(story).valid is True


def test_a_late_release_that_lets_a_third_in_is_theft(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    found = verdict(story)
    assert found.valid is False
    assert found.evidence[0]["holds"] == ["h1", "h2"]
    assert found.evidence[0]["what"] == (
        "client-1 (process 1) released its hold h1 at 1.600 s and was answered ok, though "
        "client-2 (process 2) had hold h2 since 1.500 s; that was then gone before its time: "
        "client-3 (process 3) was granted hold h3. No fault was on at that time."
    )


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
    """Its lease had run out before the other even asked: it had nothing left to release."""
    lapsed_then_granted(story)
    story.release(1, "h1", at=1400, done=1600)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid is False


def test_a_late_release_that_is_refused_is_nobody_s_fault(story):
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
    """1 releases what it still held; that 2 was granted it as well is the service's doing."""
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=500, until=1500)
    story.release(1, "h1", at=600)
    story.grant(3, "h3", at=700, until=1700)
    assert verdict(story).valid is True


def test_a_third_grant_before_the_late_release_is_the_service_s_doing(story):
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


def test_without_a_release_that_was_answered_nothing_was_tested(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, type="fail")
    assert verdict(story).valid == "unknown"
