"""Read a history's only hold and both verdicts of exclusion."""

from __future__ import annotations

from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from fencepost.checker.facts.holds import holds


def only(story, **test):
    (hold,) = holds(story.history(), test)
    return hold


def verdicts(story, **test):
    history = story.history()
    return lease_exclusion(history, test).valid, mutual_exclusion(history, test).valid
