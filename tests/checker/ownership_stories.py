"""Stories for tests of ownership: a hold that another process may have ended. Times are in ms."""

from __future__ import annotations

from fencepost.checker.ownership import ownership
from tests.histories import MS

CLOCKS = {"clocks": {f"client-{n}": {"bound_ns": 4 * MS} for n in (1, 2, 3)}}


def verdict(story, **test):
    return ownership(story.history(), test)


def lapsed_then_granted(story, granted_at=1500):
    """The lease of 1 expires; 2 has been granted the lock since."""
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=granted_at, until=granted_at + 1000)
