"""What proves that a hold was lost before its time, and what does not."""

from __future__ import annotations

import pytest

from fencepost.checker.ownership import ownership
from tests.histories import Story


@pytest.mark.parametrize(("until", "valid"), [(2400, False), (None, True)])
def test_a_grant_asked_for_before_and_whose_lease_nobody_can_see_may_have_come_before(until, valid):
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1500, until=2500)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", asked=1400, at=1700, until=until)
    assert ownership(story.history(), {}).valid is valid
