"""Hunts of leaders by an advisory lock of PostgreSQL, direct and behind PgBouncer."""

from __future__ import annotations

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.search.search import search

pytestmark = pytest.mark.slow


def tried(elector, most, options=None, **more):
    asked = described(elector, options or {}, {"seed": 1}, goal="leadership", **more)
    return search(asked.setting, 1, 600, processes=1, most=most)


def test_a_leader_that_is_cut_off_stops_at_its_deadline():
    found = tried("postgres-leader", 150, faults="partition,delay,packet/loss")
    assert found.found is None
    assert found.schedules >= 150 and len(found.states) > 20


def test_a_leader_that_replaces_its_session_in_silence_works_beside_the_next_one():
    cut = {"faults": "partition,delay,packet/loss"}
    schedule, broken = tried("postgres-leader", 1500, {"reconnects": "yes"}, **cut).found
    assert "leadership" in broken and schedule.injections


def test_a_crash_of_the_server_frees_the_lock_before_the_deadline():
    schedule, broken = tried("postgres-leader", 400, faults="kill").found
    assert "leadership" in broken and schedule.injections


def test_behind_a_pooler_two_candidates_lead_without_any_fault():
    schedule, broken = tried("pgbouncer-leader", 20).found
    assert "leadership" in broken
    assert not schedule.injections, "no fault is needed"
