"""Where it is uncertain that a release ended another's hold, and where nothing tested it."""

from __future__ import annotations

import pytest

from fencepost.checker.ownership import ownership
from tests.histories import MS

CLOCKS = {"client-1": {"bound_ns": 4 * MS}, "client-2": {"bound_ns": 2 * MS}}


@pytest.mark.parametrize(("at", "valid"), [(24, "unknown"), (26, "unknown"), (27, True)])
def test_a_foreign_release_follows_the_end_beyond_the_bounds_of_both_clocks(story, at, valid):
    """The hold ended by 0.020 s, give or take 6 ms between the two clocks."""
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=20)
    story.release(2, "h1", at=at, done=at + 1)
    assert ownership(story.history(), {"clocks": CLOCKS}).valid == valid


def test_a_grant_during_a_late_release_puts_it_to_the_test(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=1100, done=1200)
    story.grant(2, "h2", at=1150, until=2150)
    assert ownership(story.history(), {}).details["untested"] == []


def test_the_theft_of_one_hold_does_not_hide_that_of_another(story):
    """One release names a hold of another process; the next is late, of a hold that expired."""
    story.grant(3, "h3", at=0, until=1000)
    story.grant(5, "h5", at=1050, until=3000)
    story.grant(2, "h2", at=1100, until=2100)
    story.release(1, "h5", at=1200)
    story.release(3, "h3", at=1210)
    story.extend(2, "h2", at=1300, until=None, type="fail")
    found = ownership(story.history(), {})
    assert found.valid is False
    assert sorted(row["holds"] for row in found.evidence) == [["h3", "h2"], ["h5"]]


@pytest.mark.parametrize("ends", [1300, 1301])
def test_a_shorter_second_lease_of_its_process_may_have_ended_a_hold(story, ends):
    story.grant(3, "h3", at=0, until=1000)
    story.grant(2, "h2", at=1100, until=2100)
    story.grant(2, "h1", at=1150, until=ends)
    story.release(3, "h3", at=1210)
    story.extend(2, "h2", at=1300, until=None, type="fail")
    found = ownership(story.history(), {})
    why = "its own process had the lock twice, and one of the two holds had ended"
    ended = ends <= 1300
    assert found.valid == ("unknown" if ended else False)
    assert (why in found.evidence[0]["what"]) is ended
