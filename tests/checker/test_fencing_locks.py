"""Tokens are compared only within one lock and one resource."""

from __future__ import annotations

import pytest

from tests.checker.fencing_stories import two_grants, verdict


def test_tokens_of_two_locks_have_nothing_to_do_with_one_another(story):
    story.grant(1, "h1", at=10, until=1000, token=5, lock="a")
    story.grant(2, "h2", at=20, until=1000, token=5, lock="b")
    story.grant(3, "h3", at=30, until=1000, token=6, lock="a")
    assert verdict(story).valid is True


def two_locks(story):
    story.grant(1, "h1", at=0, until=1000, token=10, lock="a")
    story.grant(2, "h2", at=10, until=1000, token=1, lock="b")
    story.write(1, 100, "x", 0, 1, hold="h1", token=10)


def test_writes_under_two_locks_to_one_resource_have_no_order(story):
    two_locks(story)
    story.write(2, 200, "y", 1, 2, hold="h2", token=1)
    assert verdict(story).valid is True


def test_a_write_under_another_lock_does_not_hide_a_lower_token(story):
    two_locks(story)
    story.write(2, 200, "y", 1, 2, hold="h2", token=30)
    story.write(1, 300, "z", 2, 3, hold="h1", token=9)
    found = verdict(story)
    assert [(row["lock"], row["ops"]) for row in found.evidence] == [("a", [4, 8])]


def test_two_resources_under_one_lock_remember_tokens_of_their_own(story):
    two_grants(story)
    story.write(2, 2100, "b", 0, 1, hold="h2", token=2)
    story.write(1, 2200, "a", 0, 1, hold="h1", token=1, resource="other")
    assert verdict(story).valid is True


@pytest.mark.parametrize("hold", [None, "nobody's"])
def test_a_write_whose_hold_is_not_known_is_of_the_only_lock_or_of_none(story, hold):
    two_grants(story)
    story.write(2, 2100, "b", 0, 1, hold=hold, token=2)
    story.write(1, 2200, "a", 1, 2, hold=hold, token=1)
    assert verdict(story).valid is False
    story.grant(3, "h3", at=3000, until=4000, token=1, lock="other")
    found = verdict(story)
    assert found.valid is True
    assert found.details["untested"] == [
        "2 writes of an unknown lock",
        "the resource (no write with a lock's token was accepted)",
    ]


def test_a_lock_that_was_asked_for_and_never_granted_is_one_that_a_write_may_be_of(story):
    two_grants(story)
    story.call(3, "acquire", 2050, None, {"lock": "other"})
    story.write(2, 2100, "b", 0, 1, token=2)
    story.write(1, 2200, "a", 1, 2, token=1)
    assert verdict(story).valid is True
