"""Stories for tests of fencing, and the verdict on them. Times are in ms."""

from __future__ import annotations

from fencepost.checker.fencing import fencing


def verdict(story, **test):
    return fencing(story.history(), test)


def two_grants(story):
    story.grant(1, "h1", at=0, until=1000, token=1)
    story.grant(2, "h2", at=2000, until=3000, token=2)
