"""Searches a number of schedules of a sound lock: as many on any machine, however busy it is."""

from __future__ import annotations

from fencepost.hunt.search.search import search
from fencepost.hunt.sim.setting import Setting


def assert_not_accused(setting: Setting, schedules: int, seed: int = 1) -> None:
    """Check that none of this number of schedules gives a counterexample."""
    tried = search(setting, seed, 600, processes=1, most=schedules)
    assert tried.found is None, tried.found
    assert tried.schedules >= schedules
