"""Settings of hunts, made as the command makes them."""

from __future__ import annotations

import pytest

from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.simulation import setting_of


@pytest.fixture
def setting():
    """Make a setting: a lock, its options, faults, goals, and other fields that a test may set."""

    def make(lock, faults=None, until=None, options=None, guard=None, **settings):
        given = {"concurrency": 2, "seed": 1, **settings} | ({"guard": guard} if guard else {})
        return setting_of(
            from_arguments.spec(lock, options or {}, given), faults, until, bool(guard)
        )

    return make
