"""Hunts of fencepost's own locks. Each search once found an error of the adapter, or of the
simulation."""

from __future__ import annotations

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.search.search import search

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("lock", "options", "faults", "seed", "most"),
    [
        # A connection that was used on after a time-out took the late answer for the next one.
        ("postgres", {"mode": "row"}, None, 1, 1100),
        # A lost message came long after the fault that had lost it.
        ("postgres-lease", {}, "pause,partition,delay,packet,kill", 2, 100),
        # A client asked only the server that it was cut off from.
        ("etcd-lock-api", {}, None, 1, 600),
    ],
)
def test_a_sound_lock_is_not_accused(lock, options, faults, seed, most):
    asked = described(lock, options, {"seed": seed}, faults=faults)
    found = search(asked.setting, seed, 600, processes=1, most=most)
    assert found.found is None
    assert found.schedules >= most
