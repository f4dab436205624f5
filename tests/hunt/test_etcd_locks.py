"""Hunts of user locks on etcd that bring their own HTTP client."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.search.search import search

FILE = Path(__file__).parent / "locks_etcd.py"


def tried(lock, most):
    asked = described(f"{FILE}:{lock}", {}, {"seed": 1}, servers="etcd:3")
    return search(asked.setting, 1, 600, processes=1, most=most)


@pytest.mark.slow
def test_a_release_without_an_owner_check_is_found():
    schedule, broken = tried("DeletesAnothers", 20_000).found
    assert "linearizable" in broken
    assert schedule.injections


@pytest.mark.slow
def test_a_sound_lock_is_not_accused():
    found = tried("Sound", 500)
    assert found.found is None
    assert found.schedules >= 500 and len(found.states) > 100
