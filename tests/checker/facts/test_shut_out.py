"""The times in which no client can have a lock."""

from __future__ import annotations

from fencepost.checker.facts.shut_out import free_times
from fencepost.checker.facts.taken import Taken


def taken(begin, over):
    return Taken(begin, over, over, "after it")


def test_a_lock_is_free_while_nothing_takes_it():
    """One span lies within another, and one is a grant that came after its lease."""
    rows = taken(60, 55), taken(10, 50), taken(20, 30), taken(70, 80)
    assert list(free_times(rows, 5, 100)) == [(5, 10), (50, 60), (60, 70), (80, 100)]


def test_what_begins_after_the_end_of_the_history_ends_nothing():
    assert list(free_times([taken(10, 20), taken(120, 130)], 0, 100)) == [(0, 10), (20, 100)]
    assert list(free_times([taken(10, 200)], 0, 100)) == [(0, 10)]
