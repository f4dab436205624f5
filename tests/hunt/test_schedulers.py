"""`fencepost hunt` plays electors that drive their work: a job that is sent twice is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.harness.hunting import hunts
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.sim.schedule import Schedule
from tests.hunt.sound import assert_not_accused

pytestmark = pytest.mark.slow

pytest.importorskip("redis")
ELECTORS = Path(__file__).parents[1] / "workloads" / "electors" / "redis_electors.py"
# A server that forgets its data forgets which jobs were sent.
FAULTS = "partition,pause,delay"


def hunt(elector, **more):
    settings, servers = {"seed": 1}, "redis:1"
    asked = {"faults": FAULTS, "goal": "jobs", "budget": "120s"} | more
    return hunts.described(f"{ELECTORS}:{elector}", {}, settings, servers=servers, **asked)


def test_without_faults_schedulers_lead_in_turn_and_write_only_jobs():
    asked = hunt("Schedules")
    ran = Run(asked.setting, Schedule(), table(asked.setting)).execute()
    writes = [row for row in ran.rows if row[2:4] == ("ok", "write")]
    leads = [row for row in ran.rows if row[2:4] == ("ok", "acquire")]
    assert {row[6] for row in leads} == {"client-1", "client-2"} and ran.came_back
    assert len(writes) > 4 and all(row[4]["jobs"] for row in writes)


def test_a_scheduler_that_sends_without_a_look_at_its_lock_does_a_job_twice():
    hunted = hunt("SendsTwice")
    _, found = hunted.carry_out(processes=1)
    assert found is not None and "jobs" in found.broken


def test_a_scheduler_that_takes_each_job_under_its_lock_is_not_accused():
    assert_not_accused(hunt("Schedules").setting, 100)
