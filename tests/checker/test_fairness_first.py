"""One grant precedes another only where tokens, holds, leases or clocks leave no other order."""

from __future__ import annotations

import pytest

from tests.checker.fairness_stories import busy, held, queue, turn, waits
from tests.checker.liveness_stories import LEASE
from tests.histories import MS


def test_two_shared_grants_that_arrive_in_another_order_are_no_overtaking(story):
    held(story, 1, "w", 0, 1, 5000)
    held(story, 3, "r2", 1000, 5001, 5200, shared=True)
    held(story, 2, "r1", 100, 5300, 5400, shared=True)
    found = queue(story)
    assert found.valid is True
    assert found.details["untested"] == ["fifo", LEASE]


def one_between(story, granted, released, shared=False):
    """A reader passes one that asked 0.6 s before it; a third client is granted the lock too."""
    busy(story, 1000)
    held(story, 3, "r2", 700, 1100, 1200, shared=True)
    held(story, 4, "w", 400, granted, released, shared=shared)
    held(story, 2, "r1", 100, 1500, 1600, shared=True)


@pytest.mark.parametrize(("granted", "released"), [(1200, 1300), (1300, 1500), (1500, 1500)])
def test_two_shared_grants_with_an_exclusive_one_between_them_are(story, granted, released):
    one_between(story, granted, released)
    found = queue(story)
    assert found.valid is False
    assert found.details["fifo"]["overtakings"] == 1


@pytest.mark.parametrize(
    ("granted", "released"), [(1050, 1090), (1150, 1300), (1300, 1501), (1600, 1700)]
)
def test_an_exclusive_grant_that_may_not_lie_between_them_separates_nothing(
    story, granted, released
):
    one_between(story, granted, released)
    assert queue(story).valid is True


@pytest.mark.parametrize(("cut", "valid"), [(1200, True), (1300, True), (1301, False)])
def test_a_grant_that_a_cut_may_have_ended_by_then_may_have_come_before(story, cut, valid):
    """The service may have granted and ended it before the exclusive one, and reported it late."""
    one_between(story, 1300, 1400)
    story.fault("partition", cut, cut + 10, ["client-2"], arguments={"links": [["client-2", "s1"]]})
    test = {"lock": {"ends_with": "connection"}, "servers": ["s1", "s2", "s3"]}
    assert (queue(story, **test).details["fifo"]["overtakings"] == 0) is valid
    assert queue(story, **test | {"lock": {}}).details["fifo"]["overtakings"] == 1


def test_a_shared_grant_between_them_separates_nothing(story):
    one_between(story, 1300, 1400, shared=True)
    assert queue(story).valid is True


def test_an_exclusive_grant_whose_token_is_lower_came_before_both(story):
    held(story, 4, "w", 90, 1300, 1400, token=1)
    held(story, 3, "r2", 1000, 1100, 1200, shared=True, token=2)
    held(story, 2, "r1", 100, 1500, 1600, shared=True, token=2)
    assert queue(story).valid is True


def test_a_shared_waiter_that_gives_up_was_overtaken_by_a_shared_grant(story):
    waits(story, 9, 0, 30_000, mode="shared")
    held(story, 3, "r2", 1000, 1100, 1200, shared=True)
    assert queue(story).valid is False


def test_a_reader_that_passes_a_writer_overtakes_it(story):
    held(story, 3, "r", 1000, 1100, 1200, shared=True)
    held(story, 2, "w", 100, 1500, 1600)
    assert queue(story).valid is False


@pytest.mark.parametrize(("tokens", "valid"), [((1, 2), False), ((2, 1), True), ((2, None), False)])
def test_tokens_decide_which_client_was_granted_the_lock_first(story, tokens, valid):
    held(story, 1, "b", 1000, 1100, 1200, token=tokens[0])
    held(story, 0, "a", 0, 1500, 1600, token=tokens[1])
    assert queue(story).valid is valid


def test_a_grant_that_arrives_during_another_s_hold_may_have_come_first(story):
    held(story, 1, "b", 1000, 1100, 1700)
    held(story, 0, "a", 0, 1500, 1600)
    assert queue(story).valid is True


def test_a_grant_whose_lease_has_expired_when_it_arrives_may_have_come_first(story):
    held(story, 1, "b", 1000, 1100, 1200)
    held(story, 0, "a", 0, 1500, 1600, deadline=1100)
    assert queue(story).valid is True


def test_a_grant_whose_lease_still_ran_when_the_other_arrived_did_not(story):
    held(story, 1, "b", 1000, 1100, 1200)
    held(story, 0, "a", 0, 1500, 1600, deadline=1101)
    assert queue(story).valid is False


@pytest.mark.parametrize(("asked", "valid"), [(508, False), (507, True)])
def test_clock_bounds_between_hosts_count(story, asked, valid):
    busy(story, 1000)
    held(story, 1, "b", asked, 1100, 1200)
    held(story, 0, "a", 0, 1500, 1600)
    clocks = {f"client-{number}": {"bound_ns": 4 * MS} for number in (0, 1)}
    assert queue(story, clocks=clocks).valid is valid


@pytest.mark.parametrize(("done", "valid"), [(1509, True), (1510, False)])
def test_clock_bounds_count_at_the_end_of_a_wait_as_well(story, done, valid):
    waits(story, 9, 0, done)
    turn(story, 1, "a", 1000, 1001)
    clocks = {f"client-{number}": {"bound_ns": 4 * MS} for number in (1, 9)}
    assert queue(story, clocks=clocks).valid is valid


@pytest.mark.parametrize(("granted", "valid"), [(1208, False), (1207, True)])
def test_clock_bounds_count_between_the_end_of_a_hold_and_the_next_grant(story, granted, valid):
    held(story, 1, "b", 1000, 1100, 1200)
    held(story, 0, "a", 0, granted, 1600)
    clocks = {f"client-{number}": {"bound_ns": 4 * MS} for number in (0, 1)}
    assert queue(story, clocks=clocks).valid is valid


@pytest.mark.parametrize(("deadline", "valid"), [(1109, False), (1108, True)])
def test_clock_bounds_count_between_a_grant_and_the_end_of_the_other_s_lease(
    story, deadline, valid
):
    held(story, 1, "b", 1000, 1100, 1200)
    held(story, 0, "a", 0, 1500, 1600, deadline=deadline)
    clocks = {f"client-{number}": {"bound_ns": 4 * MS} for number in (0, 1)}
    assert queue(story, clocks=clocks).valid is valid


def test_tokens_granted_within_the_bounds_of_clocks_still_decide_the_order(story):
    held(story, 1, "b", 1000, 1100, 1200, token=2)
    held(story, 0, "a", 0, 1500, 1600, token=1)
    held(story, 2, "x", 1700, 1701, 1702, token=9)
    held(story, 3, "y", 1703, 1704, 1705, token=8)
    clocks = {f"client-{number}": {"bound_ns": 4 * MS} for number in (2, 3)}
    assert queue(story).valid is False
    assert queue(story, clocks=clocks).valid is True


def test_a_client_that_is_granted_the_lock_a_nanosecond_later_was_overtaken(story):
    held(story, 1, "b", 1000, 1100, 1100)
    held(story, 0, "a", 0, 1100.000001, 1600)
    assert queue(story).valid is False
