"""An extend that was refused because the hold had ended ends what its holder believes, no lease."""

from __future__ import annotations

import pytest

from fencepost.checker.linearizable import linearizable
from tests.checker.exclusion_stories import verdicts


@pytest.mark.parametrize(("at", "strict"), [(1499, False), (1500, True), (1501, True)])
def test_a_strict_hold_ends_with_a_refused_extend_if_its_holder_leaves_it_at_that(
    story, at, strict
):
    story.grant(0, "a", at=0, until=1000)
    story.extend(0, "a", at=1500, until=None, type="fail")
    story.grant(1, "b", at=at, until=3000)
    assert verdicts(story) == (True, strict)


@pytest.mark.parametrize("goes_on", ["extend", "release", "write"])
def test_a_holder_that_does_more_with_its_hold_after_a_refused_extend_holds_on(story, goes_on):
    story.grant(0, "a", at=0, until=1000)
    story.extend(0, "a", at=1500, until=None, type="fail")
    if goes_on == "write":
        asked = {"resource": "account", "value": 1, "version": 0, "hold": "a", "token": None}
        story.call(0, "write", 2500, 2501, asked)
    else:
        getattr(story, goes_on)(0, "a", 2500, **({"until": 3500} if goes_on == "extend" else {}))
    story.grant(1, "b", at=2000, until=2400)
    assert verdicts(story) == (True, False)


@pytest.mark.parametrize("failed", ["ended", "nothing"])
def test_so_does_one_whose_next_release_fails(story, failed):
    story.grant(0, "a", at=0, until=1000)
    story.extend(0, "a", at=1500, until=None, type="fail")
    story.release(0, "a", at=2500, type="fail", kind="no-quorum")
    story.grant(1, "b", at=2000, until=2400)
    assert verdicts(story, failed_release=failed) == (True, False)


def test_only_an_extend_that_was_refused_because_the_hold_had_ended_ends_it(story):
    story.grant(0, "a", at=0, until=1000)
    story.extend(0, "a", at=1500, until=None, type="fail", kind="no-quorum")
    story.grant(1, "b", at=2000, until=3000)
    assert verdicts(story) == (True, False)


def test_a_refused_extend_ends_no_running_lease(story):
    story.grant(0, "a", at=0, until=1000)
    story.extend(0, "a", at=500, until=None, type="fail")
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story) == (False, True)


@pytest.mark.parametrize(("ends_with", "lease"), [("lease", False), ("connection", True)])
def test_a_client_may_learn_by_a_refused_extend_that_its_connection_is_lost(
    story, ends_with, lease
):
    story.grant(0, "a", at=0, until=1000)
    story.extend(0, "a", at=500, until=None, type="fail")
    story.grant(1, "b", at=600, until=1600)
    lock = {"ends_with": ends_with}
    assert verdicts(story, lock=lock) == (lease, True)
    assert linearizable(story.history(), {"lock": lock}).valid is lease


def test_a_lock_that_ends_with_its_connection_is_not_granted_again_before_that(story):
    story.grant(0, "a", at=0, until=None)
    story.grant(1, "b", at=400, until=None)
    story.extend(0, "a", at=500, until=None, type="fail")
    assert verdicts(story, lock={"ends_with": "connection"}) == (False, False)
