"""Events of two processes with one stamp have no order, wherever the history has them."""

from __future__ import annotations

import pytest

from fencepost.checker.ownership import ownership
from fencepost.checker.resource import resource
from fencepost.checker.store import store


def write(story, process, at, value, base, stored, done=None):
    story.write(process, at, value, base, stored, done=at if done is None else done)


@pytest.mark.parametrize(("at", "valid"), [(20, True), (21, False)])
def test_a_read_of_the_stamp_of_a_write_may_have_come_before_it(story, at, valid):
    write(story, 1, 10, "a", 0, 1, done=20)
    story.read(2, at, None, 0)
    assert store(story.history(), {}).valid is valid
    assert resource(story.history(), {}).valid is valid


def test_a_read_of_the_stamp_of_its_own_process_write_came_after_it(story):
    write(story, 1, 10, "a", 0, 1, done=20)
    story.read(1, 20, None, 0)
    story.read(2, 20, "a", 1)
    assert store(story.history(), {}).valid is False
    assert resource(story.history(), {}).valid is False


@pytest.mark.parametrize(("answered", "valid"), [(300, True), (299, False)])
def test_a_release_answered_at_the_stamp_of_a_request_may_have_come_after_it(
    story, answered, valid
):
    """A's second release ended B's hold if its first one was answered before B asked."""
    story.grant(1, "a", at=0, until=1000)
    story.release(1, "a", at=100, done=answered)
    story.grant(2, "b", asked=300, at=400, until=1400)
    story.release(1, "a", at=350, done=500)
    story.grant(3, "c", at=600, until=1600)
    assert (ownership(story.history(), {}).valid is False) is not valid
