"""The ops of a lock in the model: waiting, second grants, releases without effect."""

from __future__ import annotations

import pytest

from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from fencepost.checker.ownership import ownership
from tests.checker.linearizable_stories import CLOCKS, verdict
from tests.histories import MS


def test_a_session_whose_client_waited_longer_than_a_ttl_lasts_until_its_own_deadline(story):
    story.grant(0, "b", 5000, 6000, asked=100)
    story.grant(1, "c", 5500, 6500, asked=5400)
    assert verdict(story, lock={"ends_with": "close"}).valid is False
    assert verdict(story).valid is True  # its service counts from the request on


def test_after_that_deadline_another_grant_is_fine(story):
    story.grant(0, "b", 5000, 6000, asked=100)
    story.grant(1, "c", 6100, 7100, asked=6050)
    assert verdict(story, lock={"ends_with": "close"}).valid is True


def test_a_second_grant_to_the_holder_is_left_out_and_named(story):
    story.grant(0, "outer", 1, 1001)
    story.grant(0, "inner", 100, 1100)
    story.release(0, "inner", 200)
    story.release(0, "outer", 300)
    story.grant(1, "c", 400, 1400)
    found = verdict(story)
    assert found.valid is True
    assert found.details["operations"] == 3
    assert found.details["untested"] == ["1 second grant to a holder"]


def test_another_s_grant_after_the_inner_release_alone_is_a_double_grant(story):
    story.grant(0, "outer", 1, 1001)
    story.grant(0, "inner", 100, 1100)
    story.release(0, "inner", 200)
    story.grant(1, "c", 400, 1400)
    assert verdict(story, promises={"reentrant": True}).valid is False
    assert lease_exclusion(story.history(), {"promises": {"reentrant": True}}).valid is False


def test_a_lock_that_does_not_promise_to_count_may_end_both_holds_with_one(story):
    story.grant(0, "outer", 1, 1001)
    story.grant(0, "inner", 100, 1100)
    story.release(0, "inner", 200)
    story.grant(1, "c", 400, 1400)
    assert verdict(story).valid is True
    assert lease_exclusion(story.history(), {}).valid is True


def test_it_may_not_end_both_before_either_was_given_up(story):
    story.grant(0, "outer", 1, 1001)
    story.grant(0, "inner", 100, 1100)
    story.grant(1, "c", 150, 1150)
    story.release(0, "inner", 200)
    assert verdict(story).valid is False
    assert lease_exclusion(story.history(), {}).valid is False


def test_the_end_of_the_first_hold_may_end_the_second_one(story):
    story.grant(0, "outer", 1, 1001)
    story.grant(0, "inner", 100, 1100)
    story.release(0, "outer", 200)
    story.grant(1, "c", 400, 1400)
    assert lease_exclusion(story.history(), {}).valid is True
    assert lease_exclusion(story.history(), {"promises": {"reentrant": True}}).valid is False


def test_a_shorter_second_lease_may_count_for_both(story):
    story.grant(0, "outer", 1, 1001)
    story.grant(0, "inner", 100, 300, ttl=200)
    story.grant(1, "c", 400, 1400)
    assert verdict(story).valid is True
    assert lease_exclusion(story.history(), {}).valid is True
    assert verdict(story, promises={"reentrant": True}).valid is False


def test_a_grant_to_a_process_whose_lease_has_expired_is_no_second_one(story):
    story.grant(0, "a", 1, 1001)
    story.grant(0, "b", 1500, 2500)
    story.grant(1, "c", 2000, 3000)
    found = verdict(story)
    assert (found.valid, found.details["operations"]) == (False, 3)


@pytest.mark.parametrize("failed", ["ended", "nothing"])
def test_a_release_that_reached_no_server_changed_nothing(story, failed):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100, type="fail", kind="unreachable")
    story.release(0, "a", 200)
    story.grant(1, "b", 300, 1300)
    assert verdict(story, failed_release=failed).valid is True


@pytest.mark.parametrize("failed", ["ended", "nothing"])
def test_a_lock_granted_after_a_release_that_reached_no_server_is_granted_twice(story, failed):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100, type="fail", kind="unreachable")
    story.grant(1, "b", 300, 1300)
    assert verdict(story, failed_release=failed).valid is False
    assert lease_exclusion(story.history(), {"failed_release": failed}).valid is False


def test_a_client_that_does_no_more_with_such_a_hold_has_given_it_up(story):
    """Its lease runs on, but no two clients believe to hold the lock."""
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100, type="fail", kind="unreachable")
    story.grant(1, "b", 1300, 2300)
    assert mutual_exclusion(story.history(), {}).valid is True
    assert lease_exclusion(story.history(), {}).valid is True


@pytest.mark.parametrize("failed", ["ended", "nothing"])
@pytest.mark.parametrize(("asked", "valid"), [(299, True), (301, False)])
def test_such_a_hold_may_end_once_its_process_asks_for_the_lock_again(story, failed, asked, valid):
    """A library may give its old hold back first."""
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100, type="fail", kind="unreachable")
    story.denied(0, asked, 900)
    story.grant(1, "b", 300, 1300, asked=290)
    assert lease_exclusion(story.history(), {"failed_release": failed}).valid is valid
    # Its expiry is in the order of the answers: 300 comes after 299, and 301 after 300.
    assert verdict(story, failed_release=failed).valid is valid


@pytest.mark.parametrize("ask", ["another lock", "another process", "before the release"])
def test_only_a_later_request_of_its_process_for_the_same_lock_may_end_such_a_hold(story, ask):
    story.grant(0, "a", 1, 1001)
    if ask == "before the release":
        story.denied(0, 20, 30)
    story.release(0, "a", 100, type="fail", kind="unreachable")
    if ask == "another lock":
        story.call(0, "acquire", 150, 160, {"lock": "other", "ttl": 1000 * MS}, type="fail")
    elif ask == "another process":
        story.denied(2, 150, 160)
    story.grant(1, "b", 300, 1300, asked=290)
    assert lease_exclusion(story.history(), {}).valid is False
    assert verdict(story).valid is False


def test_a_request_after_another_error_of_a_release_ends_no_hold(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100, type="fail", kind="no-quorum")
    story.denied(0, 150, 160)
    story.grant(1, "b", 300, 1300, asked=290)
    assert lease_exclusion(story.history(), {"failed_release": "nothing"}).valid is False


@pytest.mark.parametrize("goes_on", ["extend", "release", "write"])
def test_a_client_that_does_more_with_such_a_hold_has_it_still(story, goes_on):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100, type="fail", kind="unreachable")
    story.grant(1, "b", 150, 1150)
    if goes_on == "extend":
        story.extend(0, "a", 200, until=1200)
    elif goes_on == "release":
        story.release(0, "a", 200)
    else:
        story.write(0, 200, "v", 0, 1, hold="a")
    assert mutual_exclusion(story.history(), {}).valid is False


def test_a_hold_granted_again_after_such_a_release_is_the_same_one_to_the_service(story):
    """As etcd's Mutex does, whose second Lock in a session finds its own key."""
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100, type="fail", kind="unreachable")
    story.grant(0, "b", 200, 1200)
    story.release(0, "b", 300)
    story.grant(1, "c", 400, 1400)
    assert verdict(story).valid is True
    assert lease_exclusion(story.history(), {}).valid is True
    assert mutual_exclusion(story.history(), {}).valid is True


@pytest.mark.parametrize("failed", ["ended", "nothing"])
def test_a_release_refused_as_not_held_shows_that_the_hold_has_ended(story, failed):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100, type="fail")
    story.grant(0, "b", 200, 1200)
    story.release(0, "b", 300)
    story.grant(1, "c", 400, 1400)
    assert verdict(story, failed_release=failed).valid is True
    assert mutual_exclusion(story.history(), {"failed_release": failed}).valid is True


def test_a_second_release_of_a_hold_steals_nothing(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100)
    story.release(0, "a", 200)
    story.grant(1, "b", 300, 1300)
    assert verdict(story).valid is True
    assert ownership(story.history(), {}).valid is True


def test_a_second_release_that_ends_another_s_hold_is_a_double_grant(story):
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100)
    story.grant(1, "b", 150, 1150)
    story.release(0, "a", 200)
    story.grant(2, "c", 300, 1300)
    assert verdict(story).valid is False
    assert ownership(story.history(), {}).valid is False


def test_a_release_of_another_process_hold_that_is_over_is_no_op_of_the_model(story):
    """A library may answer ok to it, and no client lost a hold."""
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 100)
    story.grant(1, "b", 200, 1200)
    story.release(2, "a", 300)
    story.release(1, "b", 400)
    story.grant(2, "c", 500, 1500)
    assert verdict(story).valid is True


def test_the_release_of_a_hold_of_a_lock_that_has_no_model_is_none_either(story):
    story.grant(0, "a", 1, 1001, lock="shared", shared=True)
    story.grant(1, "b", 1, 1001)
    story.release(1, "a", 500)
    assert verdict(story).valid == "unknown"


def test_nor_is_the_release_of_a_lease_that_has_expired(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 1100, 2100)
    story.release(2, "a", 1200)
    story.extend(1, "b", 1300, 2300)
    assert verdict(story).valid is True


def test_a_grant_after_another_process_ended_a_running_lease_is_a_double_grant(story):
    story.grant(0, "a", 1, 1001)
    story.release(2, "a", 500)
    assert verdict(story).valid is True
    story.grant(1, "b", 600, 1600)
    assert verdict(story).valid is False


def test_a_release_of_a_hold_that_no_answer_named_is_an_op_of_the_model(story):
    story.grant(0, "a", 1, 1001)
    story.release(2, "x", 500)
    assert verdict(story).valid is False


def test_a_release_of_the_next_hold_without_a_name_counts(story):
    for at in (1, 100):
        asked = {"lock": "orders", "ttl": 1000 * MS}
        story.call(0, "acquire", at, at, asked, {"deadline": (at + 1000) * MS})
        story.call(0, "release", at + 50, at + 50, {"lock": "orders"})
    story.grant(1, "b", 300, 1300)
    assert verdict(story).valid is True


def test_equal_stamps_of_two_processes_are_not_ordered(story):
    """The answer stands first in the history, and may have come after the other's invocation."""
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 500, 1400, asked=400)
    story.release(0, "a", 500, 501)
    assert verdict(story).valid is True


def test_stamps_that_differ_are_ordered(story):
    story.grant(0, "a", 1, 1001)
    story.grant(1, "b", 499, 1400, asked=400)
    story.release(0, "a", 500, 501)
    assert verdict(story).valid is False


@pytest.mark.parametrize("ttl", [-1, 2.5e9, 1e9])
def test_a_ttl_that_is_no_whole_number_from_0_on_is_rounded_down(story, ttl):
    asked = {"lock": "orders", "ttl": ttl}
    story.call(0, "acquire", 1, 2, asked, type="info", error=["timeout", "-"])
    story.call(2, "acquire", 1, 2, asked, {"deadline": None, "hold": "x"})
    story.grant(1, "b", 3000, 3500, asked=2900)
    assert verdict(story).valid is True
    assert verdict(story, clocks=CLOCKS).valid is True
