"""What a rate counts: updates that are lost as an element of a set is, and shares over runs."""

from __future__ import annotations

from fencepost.harness.campaigns.rate_counts import lost_updates, summed
from tests.histories import Story


def update(story, process, at, was, value, stored, type="ok"):
    """A read of a (value, version), and a write on top of it."""
    known, version = was
    about = {"resource": "account"}
    story.call(process, "read", at, at + 1, about, {"value": known, "version": version})
    asked = about | {"value": value, "version": version}
    story.call(process, "write", at + 2, at + 3, asked, {"stored": stored}, type)


def test_updates_on_top_of_one_another_are_all_there():
    story = Story()
    update(story, 1, 0, (None, 0), "a", 1)
    update(story, 2, 10, ("a", 1), "b", 2)
    assert lost_updates(story.history()) == (0, 2)


def test_who_writes_over_what_it_has_not_read_loses_all_that_came_between():
    story = Story()
    update(story, 1, 0, (None, 0), "a", 1)
    # Process 3 reads with process 2, and writes when that has written twice.
    about = {"resource": "account"}
    story.call(3, "read", 10, 11, about, {"value": "a", "version": 1})
    update(story, 2, 10.5, ("a", 1), "b", 2)
    update(story, 2, 20, ("b", 2), "c", 3)
    story.call(3, "write", 30, 31, about | {"value": "d", "version": 1}, {"stored": 4})
    assert lost_updates(story.history()) == (2, 4)


def test_what_a_failover_has_lost_is_lost_though_its_versions_are_given_again():
    story = Story()
    update(story, 1, 0, (None, 0), "a", 1)
    update(story, 1, 10, ("a", 1), "b", 2)
    update(story, 1, 20, ("b", 2), "c", 3)
    # The new primary knows of the first one alone.
    update(story, 2, 30, ("a", 1), "d", 2)
    assert lost_updates(story.history()) == (2, 4)


def test_a_write_of_unknown_outcome_is_no_acknowledged_one_and_may_be_built_on():
    story = Story()
    update(story, 1, 0, (None, 0), "a", 1, type="info")
    update(story, 2, 10, ("a", 1), "b", 2)
    assert lost_updates(story.history()) == (0, 1)


def test_of_two_ops_that_end_together_the_higher_version_is_the_last():
    story = Story()
    about = {"resource": "account"}
    update(story, 1, 0, (None, 0), "a", 1)
    story.call(2, "read", 10, 11, about, {"value": "a", "version": 1})
    story.call(2, "write", 12, 20, about | {"value": "b", "version": 1}, {"stored": 2})
    # It read what the other wrote before that was answered, and was answered itself before it.
    story.call(3, "read", 14, 15, about, {"value": "b", "version": 2})
    story.call(3, "write", 16, 19, about | {"value": "c", "version": 2}, {"stored": 3})
    assert lost_updates(story.history()) == (0, 3)


def test_where_nothing_was_written_nothing_is_lost():
    assert lost_updates(Story().history()) == (0, 0)


def test_runs_are_added_up_and_a_share_has_an_interval():
    found = summed([{"data": (1, 400), "clients": (0, 400)}, {}, {"data": (3, 600)}])
    assert (found["data"]["count"], found["data"]["of"]) == (4, 1000)
    assert 0.0010 < found["data"]["low"] < 0.004 < found["data"]["high"] < 0.0103
    assert (found["clients"]["count"], found["clients"]["low"]) == (0, 0.0)
