"""Clients that ask in one mode, while the lock is granted in the other alone. Times are in ms; the
bound is 2 s, so that a client may pause for 0.2 s."""

from __future__ import annotations

import pytest

from tests.checker.liveness_stories import asks, verdict


def readers(story, many, *, shared=True, first=1):
    """The lock is granted once a second, for 50 ms. It is free between 1.05 and 2 s, and so on."""
    for number in range(first, first + many):
        at = 1000 * number
        story.grant(number % 3, f"h{number}", at=at, until=at + 900, asked=at - 5, shared=shared)
        story.release(number % 3, f"h{number}", at + 50)


def starved(story, **test):
    return [row for row in verdict(story, **test).evidence if "mode" in row["what"]]


def test_free_times_between_readers_count_together_for_a_writer(story):
    """It asks for 0.95 s in each of three, which counts as 0.75 s."""
    readers(story, 4)
    asks(story, 1050, 5000)
    (row,) = starved(story)
    assert row["what"] == (
        "After client-0 (process 0) released hold h3 at 3.050 s: the lock should have been granted "
        "by 4.000 s, in exclusive mode, but never was."
    )
    assert (row["valid"], row["waited_s"]) == (False, None)


@pytest.mark.parametrize(("begin", "blamed"), [(1299, True), (1300, False)])
def test_each_counts_without_a_pause(story, begin, blamed):
    """0.5 and two times 0.75 s are the bound."""
    readers(story, 4)
    asks(story, begin, 4000)
    assert bool(starved(story)) is blamed


def test_a_time_of_no_more_than_a_pause_counts_for_nothing(story):
    readers(story, 4)
    asks(story, 1801, 4000)
    assert not starved(story)


@pytest.mark.parametrize(("again", "blamed"), [(2700, True), (2701, False)])
def test_a_writer_that_pauses_begins_again(story, again, blamed):
    readers(story, 5)
    asks(story, 1050, 2500)
    asks(story, again, 4600)
    assert bool(starved(story)) is blamed


def test_a_grant_to_a_writer_ends_its_time(story):
    readers(story, 2)
    readers(story, 1, shared=False, first=3)
    readers(story, 2, first=4)
    asks(story, 1050, 5000)
    assert not starved(story)
    readers(story, 1, first=6)
    asks(story, 5000, 7000)
    assert starved(story)


def test_readers_may_be_starved_by_writers(story):
    readers(story, 4, shared=False)
    asks(story, 1050, 5000, mode="shared")
    (row,) = starved(story)
    assert "in shared mode" in row["what"]


def test_after_one_such_time_the_next_begins(story):
    readers(story, 9)
    asks(story, 1050, 9000)
    assert len(starved(story)) == 2


def test_a_lock_that_is_asked_for_in_one_mode_names_none(story):
    readers(story, 4, shared=False)
    asks(story, 1050, 3400)
    asks(story, 4050, 6060)
    assert not starved(story)
    assert verdict(story).valid is False
