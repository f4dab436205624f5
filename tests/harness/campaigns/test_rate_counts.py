"""A rate counts lost updates as elements of a set, and fractions of operations over runs."""

from __future__ import annotations

from fencepost.harness.campaigns.rate_counts import lost_updates, read_after_faults
from fencepost.report.words.intervals import summed
from tests.histories import Story


def update(story, process, at, was, value, stored, type="ok"):
    """Add a read of a (value, version), and a write on top of it."""
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


def test_a_write_on_a_stale_read_loses_all_writes_in_between():
    story = Story()
    update(story, 1, 0, (None, 0), "a", 1)
    # Process 3 reads with process 2, and writes when process 2 has written twice.
    about = {"resource": "account"}
    story.call(3, "read", 10, 11, about, {"value": "a", "version": 1})
    update(story, 2, 10.5, ("a", 1), "b", 2)
    update(story, 2, 20, ("b", 2), "c", 3)
    story.call(3, "write", 30, 31, about | {"value": "d", "version": 1}, {"stored": 4})
    assert lost_updates(story.history()) == (2, 4)
    # Of the updates until then, whatever made them lost.
    assert lost_updates(story.history(), 25e6) == (2, 3)
    assert lost_updates(story.history(), 5e6) == (0, 1)


def test_updates_lost_in_a_failover_stay_lost_though_versions_are_reused():
    story = Story()
    update(story, 1, 0, (None, 0), "a", 1)
    update(story, 1, 10, ("a", 1), "b", 2)
    update(story, 1, 20, ("b", 2), "c", 3)
    # The new primary knows only the first write.
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
    # It read the other's write before that was acknowledged, and was acknowledged first itself.
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


def test_what_a_fault_took_shows_only_in_a_read_after_its_end():
    story = Story()
    update(story, 1, 0, (None, 0), "a", 1)
    assert read_after_faults(story.history())
    story.fault("power", 10, 20, ["nats-1"])
    story.call(1, "read", 15, 21, {"resource": "account"}, {"value": None, "version": 0})
    assert not read_after_faults(story.history())
    story.call(1, "read", 22, 23, {"resource": "account"}, {}, "info")
    assert not read_after_faults(story.history())
    story.call(1, "read", 24, 25, {"resource": "account"}, {"value": None, "version": 0})
    assert read_after_faults(story.history())
