"""Shared holds may carry one token unless an exclusive grant certainly came between them."""

from __future__ import annotations

import pytest

from tests.checker.fencing_stories import verdict
from tests.histories import MS


def test_two_shared_holds_of_one_generation_may_carry_one_token(story):
    story.grant(1, "h1", at=10, until=1000, token=5, shared=True)
    story.grant(2, "h2", at=20, until=1000, token=5, shared=True)
    story.release(1, "h1", at=30)
    story.grant(3, "h3", at=40, until=1000, token=5, shared=True)
    assert verdict(story).valid is True


def test_a_shared_and_an_exclusive_hold_may_not_carry_one_token(story):
    story.grant(1, "h1", at=10, until=100, token=5, shared=True)
    story.grant(2, "h2", asked=5, at=200, until=300, token=5)
    story.grant(3, "h3", asked=5, at=400, until=500, token=5, shared=True)
    evidence = verdict(story).evidence
    assert [row["holds"] for row in evidence] == [["h1", "h2"], ["h2", "h3"]]
    assert all(": the same token as 5, which" in row["what"] for row in evidence)


def test_two_shared_holds_may_not_carry_one_token_with_an_exclusive_grant_between_them(story):
    """This holds even if the exclusive grant has no token, and so cannot be out of order."""
    story.grant(1, "h1", at=10, until=100, token=5, shared=True)
    story.grant(2, "h2", asked=110, at=120, until=200)
    story.grant(3, "h3", asked=210, at=220, until=300, token=5, shared=True)
    found = verdict(story)
    assert found.valid is False
    assert found.summary.startswith("1 of 2 tokens repeated or lower.")
    assert found.evidence[0]["what"] == (
        "client-3 (process 3) was granted token 5 at 0.220 s: after the exclusive hold h2 the "
        "same token as 5, which client-1 (process 1) was granted at 0.010 s. "
        "No fault was on at that time."
    )


def test_each_shared_grant_after_the_exclusive_one_is_named(story):
    story.grant(1, "h1", at=10, until=100, token=5, shared=True)
    story.grant(2, "h2", asked=110, at=120, until=200)
    story.grant(3, "h3", asked=210, at=220, until=300, token=5, shared=True)
    story.grant(4, "h4", asked=210, at=230, until=300, token=5, shared=True)
    evidence = verdict(story).evidence
    assert [row["holds"] for row in evidence] == [["h1", "h3"], ["h1", "h4"]]


VAGUE = {"clocks": {"client-1": {"bound_ns": 200 * MS}, "client-4": {"bound_ns": 4 * MS}}}


def test_a_first_grant_by_a_vague_clock_does_not_hide_one_that_was_certainly_before(story):
    story.grant(1, "h1", at=10, until=90, token=5, shared=True)
    story.grant(2, "h2", at=20, until=90, token=5, shared=True)
    story.grant(4, "h4", at=100, until=190)
    story.grant(2, "h5", at=500, until=600, token=5, shared=True)
    assert [row["holds"] for row in verdict(story, **VAGUE).evidence] == [["h2", "h5"]]


def test_an_exclusive_grant_by_a_vague_clock_does_not_hide_one_that_came_certainly_between(story):
    story.grant(2, "h2", at=20, until=90, token=5, shared=True)
    story.grant(4, "h4", at=100, until=190)
    story.grant(1, "h1", at=110, until=190)
    story.grant(2, "h5", at=500, until=600, token=5, shared=True)
    assert [row["holds"] for row in verdict(story, **VAGUE).evidence] == [["h2", "h5"]]


@pytest.mark.parametrize("asked", [5, 115])
def test_an_exclusive_grant_that_may_have_come_before_or_after_both_proves_nothing(story, asked):
    story.grant(1, "h1", at=10, until=100, token=5, shared=True)
    story.grant(2, "h2", asked=asked, at=120, until=200)
    after = 210 if asked < 10 else 119
    story.grant(3, "h3", asked=after, at=220, until=300, token=5, shared=True)
    assert verdict(story).valid is True


def test_an_exclusive_grant_of_another_lock_does_not_come_between(story):
    story.grant(1, "h1", at=10, until=100, token=5, shared=True)
    story.grant(2, "h2", asked=110, at=120, until=200, lock="other")
    story.grant(3, "h3", asked=210, at=220, until=300, token=5, shared=True)
    assert verdict(story).valid is True
