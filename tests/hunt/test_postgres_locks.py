"""Hunts of locks on PostgreSQL and behind PgBouncer: on a plain socket, and by pg8000."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.search.search import search

HERE = Path(__file__).parent
RAW = HERE / "locks_postgres_raw.py"
PG8000 = pytest.param(
    HERE / "locks_postgres.py",
    marks=[
        pytest.mark.slow,
        pytest.mark.skipif(find_spec("pg8000") is None, reason="pg8000 is not installed"),
    ],
)
LEASE = {"ends_with": "lease", "faults": "partition,kill,pause"}


def tried(file, lock, servers, most, **more):
    asked = described(f"{file}:{lock}", {}, {"seed": 1}, servers=servers, **more)
    return search(asked.setting, 1, 600, processes=1, most=most)


@pytest.mark.parametrize("file", [RAW, PG8000])
def test_a_session_s_lock_excludes_nobody_behind_a_pooler(file):
    schedule, broken = tried(file, "Advisory", "pgbouncer", 20).found
    assert "lease_exclusion" in broken
    assert not schedule.injections, "no fault is needed"


@pytest.mark.parametrize("file", [RAW, PG8000])
def test_a_session_s_lock_on_postgresql_is_not_accused(file):
    found = tried(file, "Advisory", "postgres", 150)
    assert found.found is None
    assert found.schedules >= 150 and len(found.states) > 20


@pytest.mark.parametrize("file", [PG8000])
def test_a_release_without_an_owner_check_is_found_and_its_twin_is_not_accused(file):
    assert tried(file, "LeaseOfAnyone", "postgres", 3000, **LEASE).found is not None
    assert tried(file, "Lease", "postgres", 150, **LEASE).found is None
