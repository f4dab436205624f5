"""Leases that are counted from too late, or expired on arrival, as causes of two holders."""

from __future__ import annotations

import pytest

from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from tests.checker.cause_stories import TEST, granted_by, links
from tests.histories import MS, Story


def test_a_client_that_counts_its_lease_from_the_answer_is_named_with_the_reason_for_the_delay():
    story = Story()
    story.grant(1, "h1", asked=100, at=900, until=1900)
    story.fault("pause", 200, 800, ["client-1"])
    story.grant(2, "h2", at=1200, until=2200)
    sorts, found, summary = links(lease_exclusion, story)
    assert sorts == ["counted-late", "counted-late"]
    assert (
        "Process 1 seems to count its lease of 1.000 s from the answer, 0.800 s after"
        in found[0]["what"]
    )
    assert "pause of client-1" in found[1]["what"]
    assert summary.endswith("(likely: its holder counts its lease from the answer).")


def test_a_lease_counted_from_between_request_and_answer_is_reported_with_that_time():
    story = Story()
    story.grant(1, "h1", asked=100, at=900, until=1500)
    story.grant(2, "h2", at=1200, until=2200)
    _, found, summary = links(lease_exclusion, story)
    assert found[0]["what"] == (
        "Process 1 seems to count its lease of 1.000 s from 0.500 s, 0.400 s after it had asked"
    )
    assert summary.endswith("(likely: its holder counts its lease late).")


def test_the_lease_to_explain_is_the_one_that_had_expired_when_granted():
    """A client whose session ended while it waited, as etcd 3.4 grants the lock to."""
    story = Story()
    story.grant(1, "h1", asked=200, at=2500, until=4500)
    story.fault("pause", 150, 2400, ["client-2"])
    story.grant(2, "h2", asked=100, at=2510, until=1100)
    sorts, found, summary = links(mutual_exclusion, story)
    assert sorts == ["expired-grant", "expired-grant"]
    assert found[0]["what"] == (
        "The lease of hold h2 had expired at 1.100 s, before the library handed out its grant at "
        "2.510 s"
    )
    assert found[0]["sure"] is False  # the library may have looked at its clock before the stop
    assert (found[1]["family"], found[1]["nodes"]) == ("pause", ["client-2"])
    assert summary.endswith("(it was granted when its lease had expired).")


def expired(assumed=False):
    story = Story()
    story.call(
        1, "acquire", 100, 1700, {"lock": "orders", "ttl": 1000 * MS},
        {"hold": "h1", "token": None, "deadline": 1100 * MS}
        | ({"assumed": True} if assumed else {}),
    )  # fmt: skip
    story.grant(2, "h2", asked=1600, at=1800, until=2600)
    story.release(1, "h1", at=2000)
    return story


def test_a_grant_whose_lease_had_expired_when_it_arrived_was_handed_out_by_the_library():
    """It is never said that its holder kept it past its lease."""
    sorts, found, summary = links(mutual_exclusion, expired())
    assert sorts == ["expired-grant"]
    assert (found[0]["sure"], found[0]["nodes"]) == (True, ["client-1"])
    assert summary.endswith("(it was granted when its lease had expired).")


@pytest.mark.parametrize(("start", "end", "sure"), [(1000, 1690, False), (1090, 1099, True)])
def test_a_client_that_was_stopped_after_its_lease_may_have_looked_at_its_clock(start, end, sure):
    story = expired()
    story.fault("pause", start, end, ["client-1"])
    _, found, _ = links(mutual_exclusion, story)
    assert found[0]["sure"] is sure
    assert [link.get("family") for link in found] == [None, "pause"]
    assert found[1]["sure"] is False


def test_a_deadline_that_the_client_assumed_accuses_no_library():
    sorts, found, _ = links(mutual_exclusion, expired(assumed=True))
    assert sorts == ["expired-grant"]
    assert found[0]["sure"] is False
    assert "counted from the call, had expired" in found[0]["what"]


def test_a_grant_that_was_renewed_once_it_had_arrived_had_a_lease_again():
    story = expired()
    value = {"lock": "orders", "hold": "h1", "deadline": 1790 * MS}
    story.op(1750, 1, "info", "renewed", value)
    assert links(mutual_exclusion, story)[0] == ["lease-over", "kept-on"]


def test_a_client_that_learns_late_of_an_earlier_grant_is_named():
    story = Story()
    story.grant(2, "h2", asked=100, at=2500, until=3500)
    story.fault("pause", 200, 2490, ["client-2"])
    story.grant(1, "h1", asked=2300, at=2350, until=3300)
    sorts, found, _ = links(lease_exclusion, story)
    assert sorts == ["counted-late", "counted-late"]
    assert (
        "Process 2 seems to count its lease of 1.000 s from the answer, 2.400 s after"
        in found[0]["what"]
    )
    assert "pause of client-2" in found[1]["what"]


def test_a_lease_counted_late_explains_no_grant_that_came_before_its_true_end():
    story = Story()
    story.grant(1, "h1", asked=100, at=900, until=1900)
    story.grant(2, "h2", at=1099, until=2099)
    assert links(lease_exclusion, story)[0] == ["none"]


def test_a_client_that_waited_for_another_hold_counts_from_a_later_request():
    story = Story()
    story.grant(3, "h3", at=50, until=1050)
    story.release(3, "h3", at=800)
    story.grant(1, "h1", asked=100, at=900, until=1900)
    story.grant(2, "h2", at=1200, until=2200)
    assert links(lease_exclusion, story)[0] == ["none"]


def test_a_session_that_was_renewed_while_its_client_waited_is_not_counted_late():
    story = Story()
    story.grant(1, "h1", asked=100, at=900, until=1900)
    story.grant(2, "h2", at=1200, until=2200)
    test = TEST | {"lock": {"ends_with": "close"}}
    assert links(lease_exclusion, story, test)[0] == ["none"]


@pytest.mark.parametrize(
    ("asked", "until", "counted"), [(100, 1150, False), (100, 1151, True), (100, 1149, False)]
)
def test_a_lease_is_counted_late_if_its_end_is_a_twentieth_later_than_requested(
    asked, until, counted
):
    story = Story()
    story.grant(1, "h1", asked=asked, at=300, until=until)
    story.grant(2, "h2", at=1120, until=2120)
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
        f"Process 1 seems to count its lease of 1.000 s from {since} after it had asked"
    )
    assert found[0]["time_ns"] == (900 if until == 1850 else 849) * MS


@pytest.mark.parametrize(("until", "dead"), [(599, True), (600, True), (601, False)])
def test_a_lease_that_ends_in_the_instant_of_its_grant_had_expired(until, dead):
    story = Story()
    granted_by(story, 1, "h1", 100, 1100, ["redis-1", "redis-2"])
    granted_by(story, 2, "h2", 600, until, ["redis-2", "redis-3"])
    sorts, _, _ = links(mutual_exclusion, story)
    assert sorts == (["granted-both", "expired-grant"] if dead else ["granted-both", "none"])
