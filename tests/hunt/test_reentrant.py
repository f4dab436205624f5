"""Hunts acquire a reentrant lock again under its own hold, at once or late."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.search.search import search

pytestmark = pytest.mark.slow

LOCKS = Path(__file__).parent / "locks_reentrant.py"
SCHEDULES = 400


@pytest.mark.parametrize(("name", "found"), [("Counts", True), ("Prolongs", False)])
def test_a_second_acquire_that_prolongs_no_lease_is_found(name, found):
    hunt = described(
        f"{LOCKS}:{name}", {}, {"seed": 1}, servers="redis:1", faults="pause:client",
        goal="lease_exclusion",
    )  # fmt: skip
    tried = search(hunt.setting, 1, 600, processes=1, most=SCHEDULES)
    assert (tried.found is not None) is found
