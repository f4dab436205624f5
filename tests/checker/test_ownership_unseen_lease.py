"""Without a deadline, a hold certainly lasts for the ttl of its requests, and no longer."""

from __future__ import annotations

import pytest

from tests.checker.ownership_stories import verdict
from tests.histories import MS


@pytest.mark.parametrize(("at", "valid"), [(899, False), (900, "unknown"), (9000, "unknown")])
def test_the_release_of_another_s_hold_is_theft_only_for_the_ttl_from_the_request_on(
    story, at, valid
):
    story.grant(1, "h1", asked=0, at=100, until=None, ttl=900)
    story.release(2, "h1", at=at)
    assert verdict(story).valid == valid


@pytest.mark.parametrize(("done", "valid"), [(1000, True), (1001, "unknown")])
def test_a_release_certainly_ended_its_own_hold_only_if_answered_within_the_ttl(story, done, valid):
    story.grant(1, "h1", at=0, until=None, ttl=1000)
    story.grant(2, "h2", asked=960, at=1001, until=2000)
    story.release(1, "h1", at=950, done=done)
    story.extend(2, "h2", at=1100, until=None, type="fail")
    assert verdict(story).valid == valid


def test_a_release_long_after_its_ttl_may_have_ended_another_s_hold(story):
    story.grant(1, "h1", at=0, until=None, ttl=1000)
    story.grant(2, "h2", at=5000, until=6000)
    story.release(1, "h1", at=5100)
    story.grant(3, "h3", at=5200, until=6200)
    assert verdict(story).valid == "unknown"


@pytest.mark.parametrize(
    ("sent", "type", "at", "valid"),
    [
        (1000, "ok", 1999, False),
        (1000, "ok", 2000, "unknown"),
        (1001, "ok", 1999, "unknown"),  # it had ended, maybe
        (1000, "fail", 1500, "unknown"),
        (1000, "info", 1500, "unknown"),
    ],
)
def test_an_extend_prolongs_an_unseen_lease_if_it_was_sent_during_it_and_answered_ok(
    story, sent, type, at, valid
):
    story.grant(1, "h1", at=0, until=None, ttl=1000)
    story.extend(1, "h1", at=sent, until=None, type=type, kind="no-quorum")
    story.release(2, "h1", at=at)
    assert verdict(story).valid == valid


def test_an_extend_by_less_shortens_an_unseen_lease(story):
    story.grant(1, "h1", at=0, until=None, ttl=5000)
    asked = {"lock": "orders", "hold": "h1", "ttl": 1000 * MS}
    story.call(1, "extend", 1000, 1500, asked, type="info", error=["timeout", "-"])
    story.release(2, "h1", at=2000)
    assert verdict(story).valid == "unknown"
