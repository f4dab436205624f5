"""An acknowledged write that is later absent is missing, and no other write is."""

from __future__ import annotations

from fencepost.checker.resource import resource
from tests.checker.resource_stories import TWO_HOSTS, kinds


def test_an_acknowledged_write_that_is_not_there_later_is_missing(story):
    story.write(1, 10, "a", 0, 1)
    story.read(2, 20, None, 0)
    assert kinds(story) == [("missing", "a")]
    assert "client-1" in resource(story.history(), {}).evidence[0]["what"]
    assert (
        "process 2 read version 0, None, at 0.020 s"
        in (resource(story.history(), {}).evidence[0]["what"])
    )


def test_a_write_is_missing_also_where_only_its_base_is_known(story):
    story.write(3, 5, "x", None, type="info")
    story.write(1, 10, "a", 4)
    story.read(2, 20, "x", 4)
    assert kinds(story) == [("missing", "a")]


def test_a_write_is_missing_though_others_were_read_in_between(story):
    story.write(1, 10, "a", 0, 1)
    story.read(2, 20, "a", 1)
    story.read(3, 30, None, 0)
    story.write(4, 40, "b", 0, 1)
    story.read(5, 50, "b", 1)
    assert ("missing", "a") in kinds(story)


def test_a_version_that_is_given_twice_means_that_the_first_write_is_gone(story):
    story.read(1, 5, None, 0)
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, 1)
    assert kinds(story) == [("missing", "a")]


def test_a_read_that_had_begun_before_the_acknowledgement_may_miss_the_write(story):
    story.write(1, 10, "a", 0, 1, done=20)
    story.read(2, 15, None, 0, done=30)
    assert kinds(story) == []


def test_a_write_of_unknown_outcome_is_not_missed(story):
    story.write(1, 10, "a", 0, type="info")
    story.write(2, 20, "b", 0, 1)
    story.read(3, 30, "b", 1)
    assert kinds(story) == []


def test_a_write_that_was_never_acknowledged_may_go_again_though_it_was_seen(story):
    story.write(1, 10, "a", 0, type="info")
    story.read(2, 20, "a", 1)
    story.read(3, 30, None, 0)
    assert kinds(story) == []


def test_of_two_acknowledged_writes_stored_as_one_version_one_is_missing(story):
    """The same holds for concurrent writes."""
    story.write(1, 10, "a", 0, 1, done=20)
    story.write(2, 15, "b", 0, 1, done=25)
    assert kinds(story) == [("missing", "a")]
    story.read(3, 30, "a", 1)
    assert kinds(story) == [("missing", "b")]


def test_a_write_of_a_lower_version_after_the_acknowledgement_proves_it_missing(story):
    story.write(1, 10, "a", 4, 5)
    story.write(2, 20, "b", 2, 3)
    assert kinds(story) == [("missing", "a")]


def test_its_own_version_read_later_with_another_value_proves_it_missing(story):
    story.write(2, 5, "b", 0, type="info", done=40)
    story.write(1, 10, "a", 0, 1)
    story.read(3, 20, "b", 1)
    assert kinds(story) == [("missing", "a")]


def test_a_write_can_be_lost_and_missing(story):
    story.write(1, 10, "a", 0, 3)
    story.read(2, 20, None, 2)
    assert kinds(story) == [("lost_update", "a"), ("missing", "a")]


def test_its_own_version_read_before_with_another_value_proves_nothing(story):
    """A write of unknown outcome may be absent, and the store may reuse its number."""
    story.write(2, 5, "b", 0, type="info")
    story.read(3, 8, "b", 1)
    story.write(1, 10, "a", 0, 1)
    assert kinds(story) == []


def test_on_two_hosts_a_read_counts_as_later_only_beyond_the_bounds_of_both_clocks(story):
    story.write(1, 10, "a", 0, 1)
    story.read(2, 18, None, 0)
    assert kinds(story) == [("missing", "a")]
    assert kinds(story, TWO_HOSTS) == []
    story.read(3, 18.1, None, 0)
    assert kinds(story, TWO_HOSTS) == [("missing", "a")]
