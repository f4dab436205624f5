"""Who has asked and not given up, died or lost its session has its place in the queue."""

from __future__ import annotations

import pytest
from fairness_stories import held, queue, served, turn, waits


def test_one_who_waits_in_calm_and_gives_up_while_later_ones_are_served_was_overtaken(story):
    waits(story, 9, 0, 30_000)
    served(story, 1000, 29_000)
    found = queue(story)
    assert found.valid is False
    assert found.summary == (
        "client-1 (process 1) asked at 1.000 s and was granted the lock at 1.001 s, before "
        "client-9 (process 9), which had been waiting since 0.000 s."
    )
    assert found.details["fifo"]["overtakings"] == 28


def test_so_was_one_whose_acquire_never_returned(story):
    waits(story, 9, 0, None)
    served(story, 1000, 5000)
    assert queue(story).valid is False


def test_so_was_one_that_was_told_nothing_certain(story):
    waits(story, 9, 0, 30_000, type="info", error=("timeout", "-"))
    served(story, 1000, 5000)
    assert queue(story).valid is False


@pytest.mark.parametrize(("done", "valid"), [(1501, True), (1502, False)])
def test_who_gives_up_may_have_left_the_queue_half_a_second_before(story, done, valid):
    waits(story, 9, 0, done)
    turn(story, 1, "a", 1000, 1001)
    assert queue(story).valid is valid


def test_a_client_that_died_in_its_acquire_waits_for_nothing(story):
    waits(story, 9, 0, 30_000, type="info", error=("crashed", "-"))
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_a_client_whose_session_ended_while_it_waited_has_lost_its_place(story):
    waits(story, 9, 0, 30_000)
    story.op(1400, 9, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_so_has_one_whose_session_ended_in_the_instant_in_which_it_asked(story):
    waits(story, 9, 0, 30_000)
    story.op(0, 9, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_a_hold_that_is_lost_while_its_process_waits_leaves_it_its_place(story):
    waits(story, 9, 0, 30_000)
    story.op(1400, 9, "info", "lost", {"lock": "other", "hold": "h9"}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).details["fifo"]["overtakings"] == 4


@pytest.mark.parametrize(("done", "waited"), [(500, 0), (501, 1)])
def test_a_long_wait_is_longer_than_half_a_second(story, done, waited):
    waits(story, 9, 0, done)
    assert queue(story).details["fifo"]["waited_long"] == waited


def test_until_then_it_had_its_place(story):
    waits(story, 9, 0, 30_000)
    story.op(2400, 9, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).details["fifo"]["overtakings"] == 1


@pytest.mark.parametrize(("later", "valid"), [(500, False), (499, True)])
def test_half_a_second_of_asking_puts_one_into_the_queue(story, later, valid):
    turn(story, 0, "a", 0, 2000)
    turn(story, 1, "b", later, 1000)
    assert queue(story).valid is valid


def test_locks_have_queues_of_their_own(story):
    waits(story, 9, 0, 3000, lock="other")
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_an_overtaking_is_seen_behind_one_who_has_waited_since_before_a_fault(story):
    waits(story, 4, 0, None)
    story.fault("partition", 1000, 2000, ["redis-1"])
    held(story, 1, "h", 2500, 2600, 29_900)
    turn(story, 5, "five", 20_000, 40_000)
    turn(story, 6, "six", 25_000, 30_000)
    found = queue(story)
    assert found.valid is False
    assert "client-6 (process 6) asked at 25.000 s" in found.summary
    assert found.details["fifo"]["overtakings"] == 1


# Calm.


@pytest.mark.parametrize(
    ("start", "end", "valid"),
    [
        (1000, 1001, False),  # it begins when the later one is granted
        (999, 1001, True),
        (-900, -500, False),
        (-900, -450, True),  # over for as long as it was on
        (-100, -51, False),
        (-100, -50, True),
    ],
)
def test_calm_is_without_a_fault_and_without_one_that_was_over_for_less_long_than_it_was_on(
    story, start, end, valid
):
    """One asks at 0 and another at 0.9 s; this one is granted the lock first, at 1 s."""
    moved = 5000
    turn(story, 0, "a", moved, moved + 2000)
    turn(story, 1, "b", moved + 900, moved + 1000)
    story.fault("clock", moved + start, moved + end, ["redis-1"])
    assert queue(story).valid is valid


def test_a_fault_that_was_never_healed_leaves_no_calm(story):
    story.fault("clock", 0, None, ["redis-1"])
    waits(story, 9, 100, 30_000)
    served(story, 1000, 5000)
    assert queue(story).details["fifo"]["overtakings"] == 0


def test_the_longer_of_two_faults_decides(story):
    moved = 9000
    turn(story, 0, "a", moved, moved + 2000)
    turn(story, 1, "b", moved + 900, moved + 1000)
    story.fault("clock", moved - 3000, moved - 1000, ["redis-1"])
    story.fault("clock", moved - 2500, moved - 2400, ["redis-2"])
    assert queue(story).valid is True


@pytest.mark.parametrize(("paused", "valid"), [(1599, True), (1600, False), (1700, False)])
def test_who_is_paused_as_another_reader_is_granted_the_lock_may_have_been_too(
    story, paused, valid
):
    """Its session ended in the pause, and it was told of nothing but that."""
    waits(story, 9, 0, 3000, mode="shared", error=("not-granted", "its session ended"))
    held(story, 3, "r", 1000, 1100, 1200, shared=True)
    story.fault("pause", paused, 2900, ["client-9"])
    assert (queue(story).details["fifo"]["overtakings"] == 0) is valid
