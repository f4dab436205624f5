"""Leases that are counted from too late, or expired on arrival, as causes of two holders."""

from __future__ import annotations

import pytest

from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from tests.checker.cause_stories import granted_by, links
from tests.histories import MS, Story


def test_a_client_that_counts_its_lease_from_the_answer_is_named_with_the_reason_for_the_delay():
    story = Story()
    story.grant(1, "h1", asked=100, at=900, until=1900)
    story.fault("pause", 200, 800, ["client-1"])
    story.grant(2, "h2", at=1200, until=2200)
    sorts, found, summary = links(lease_exclusion, story)
    assert sorts == ["counted-late", "counted-late"]
    assert (
        "Process 1 counts the lease of 1.000 s from the answer, 0.800 s after" in found[0]["what"]
    )
    assert "pause of client-1" in found[1]["what"]
    assert summary.endswith("(its holder counts its lease from the answer).")


def test_a_lease_counted_from_between_request_and_answer_is_reported_with_that_time():
    story = Story()
    story.grant(1, "h1", asked=100, at=900, until=1500)
    story.grant(2, "h2", at=1200, until=2200)
    _, found, summary = links(lease_exclusion, story)
    assert found[0]["what"] == (
        "Process 1 counts the lease of 1.000 s from 0.500 s, 0.400 s after it had asked"
    )
    assert summary.endswith("(its holder counts its lease late).")


def test_the_lease_to_explain_is_the_one_that_had_expired_when_granted():
    """A client whose session ended while it waited, as etcd 3.4 grants the lock to."""
    story = Story()
    story.grant(1, "h1", asked=200, at=2500, until=4500)
    story.fault("pause", 150, 2400, ["client-2"])
    story.grant(2, "h2", asked=100, at=2510, until=1100)
    sorts, found, summary = links(mutual_exclusion, story)
    assert sorts == ["lease-over", "kept-by-fault"]
    assert found[0]["what"] == "The lease of hold h2 expired at 1.100 s"
    assert (found[1]["family"], found[1]["nodes"]) == ("pause", ["client-2"])
    assert summary.endswith("(likely: pause of client-2).")


def test_a_client_that_learns_late_of_an_earlier_grant_is_named():
    story = Story()
    story.grant(2, "h2", asked=100, at=2500, until=3500)
    story.fault("pause", 200, 2490, ["client-2"])
    story.grant(1, "h1", asked=2300, at=2350, until=3300)
    sorts, found, _ = links(lease_exclusion, story)
    assert sorts == ["counted-late", "counted-late"]
    assert (
        "Process 2 counts the lease of 1.000 s from the answer, 2.400 s after" in found[0]["what"]
    )
    assert "pause of client-2" in found[1]["what"]


@pytest.mark.parametrize(
    ("asked", "until", "counted"), [(100, 1150, False), (100, 1151, True), (100, 1100, False)]
)
def test_a_lease_is_counted_late_if_its_end_is_a_twentieth_later_than_requested(
    asked, until, counted
):
    story = Story()
    story.grant(1, "h1", asked=asked, at=300, until=until)
    story.grant(2, "h2", at=1000, until=2000)
    assert links(lease_exclusion, story)[0] == (["counted-late"] if counted else ["none"])


def test_a_lease_that_was_extended_is_not_counted_late():
    story = Story()
    story.grant(1, "h1", asked=100, at=300, until=1100)
    story.extend(1, "h1", at=900, until=1900)
    story.grant(2, "h2", at=1200, until=2200)
    assert links(lease_exclusion, story)[0] == ["none"]


@pytest.mark.parametrize(
    ("until", "since"), [(1849, "0.849 s, 0.749 s"), (1850, "the answer, 0.800 s")]
)
def test_a_lease_is_counted_from_the_answer_up_to_a_twentieth(until, since):
    story = Story()
    story.grant(1, "h1", asked=100, at=900, until=until)
    story.grant(2, "h2", at=1200, until=2200)
    _, found, _ = links(lease_exclusion, story)
    assert found[0]["what"] == (
        f"Process 1 counts the lease of 1.000 s from {since} after it had asked"
    )
    assert found[0]["time_ns"] == (900 if until == 1850 else 849) * MS


@pytest.mark.parametrize(("until", "dead"), [(599, True), (600, True), (601, False)])
def test_a_lease_that_ends_in_the_instant_of_its_grant_had_expired(until, dead):
    story = Story()
    granted_by(story, 1, "h1", 100, 1100, ["redis-1", "redis-2"])
    granted_by(story, 2, "h2", 600, until, ["redis-2", "redis-3"])
    sorts, _, _ = links(mutual_exclusion, story)
    assert sorts == (
        ["granted-both", "lease-over", "kept-on"] if dead else ["granted-both", "none"]
    )
