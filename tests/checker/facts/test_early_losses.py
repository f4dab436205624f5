"""Which events prove that a hold was lost before its lease expired, and which do not."""

from __future__ import annotations

import pytest

from fencepost.checker.ownership import ownership
from tests.histories import Story


@pytest.mark.parametrize(("until", "valid"), [(2400, False), (None, True)])
def test_a_grant_requested_earlier_without_a_visible_lease_may_have_happened_earlier(until, valid):
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1500, until=2500)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", asked=1400, at=1700, until=until)
    assert ownership(story.history(), {}).valid is valid
