"""The time of a JVM jumps: a program in Java on a model of Redis."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from fencepost.harness.hunting import clocks, interrupt
from fencepost.harness.hunting.hunts import described
from fencepost.harness.hunting.programs import conductor
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live.conductor import Job
from fencepost.hunt.search.judge import violations
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.world import MS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("javac") and interrupt.CAN), reason="needs javac, and x86-64"
    ),
]
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("java")
    sources = [Path(__file__).parent / "programs" / "Lock.java",
               ROOT / "sdk" / "java" / "Fencepost.java"]  # fmt: skip
    subprocess.run(["javac", "-d", made, *sources], check=True)
    return made


def hunt_of(folder, defect="none", ttl="100s", **more):
    program = f"java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp . Lock {defect}"
    return described(
        "", {}, {"seed": 1, "ttl": ttl}, servers="redis:1", program=program, ship=folder, **more
    )


def played(hunt, *schedules):
    with conductor(hunt.spec, hunt.setting, 1) as made:
        return list(made.play(Job(schedule) for schedule in schedules))


def numbered(hunt, kind):
    return next(
        n for n, one in enumerate(table(hunt.setting), 1) if one.kind == kind and one.client == 0
    )


def grants(run, name):
    return [row[0] for row in run.rows if row[2:4] == ("ok", "acquire") and row[6] == name]


def test_a_wait_for_a_long_lease_takes_no_real_time(folder):
    hunt = hunt_of(folder, faults="kill:client")
    begun = time.monotonic()
    # client-1 dies once it has the lock; client-2 asks every 50 ms until the lease has ended.
    usual, dead = played(hunt, Schedule(), Schedule((), ((5, numbered(hunt, "kill")),)))
    took_s = time.monotonic() - begun
    for run in (usual, dead):
        assert not run.hung and run.came_back and not violations(run, hunt.setting.goals)
        assert all(one.clock.jumps for one in run.programs)
    first, then = min(grants(dead, "client-1")), min(grants(dead, "client-2"))
    assert 99_000 * MS < then - first < 101_000 * MS
    assert took_s < 90


def test_a_paused_jvm_continues_when_its_pause_has_ended(folder):
    hunt = hunt_of(folder, faults="pause:client")
    (run,) = played(hunt, Schedule((), ((5, numbered(hunt, "pause")),)))
    assert run.injected and not run.hung and run.came_back
    assert not violations(run, ("lease_exclusion", "ownership", "linearizable"))


def test_time_stands_still_while_a_thread_is_at_work(folder):
    (run,) = played(hunt_of(folder, "spins", ttl="500ms", faults="pause:client"), Schedule())
    assert not run.hung and run.came_back
    freed = next(row[0] for row in run.rows if row[2:4] == ("ok", "release"))
    # Client-2 asks every 50 ms; in reality its thread at work takes longer.
    then = min(at for at in grants(run, "client-2") if at > freed)
    assert then < freed + 300 * MS


@pytest.mark.parametrize("without", [1, 2])
def test_waits_end_although_the_clocks_of_the_other_client_cannot_be_set(
    folder, monkeypatch, without
):
    asked = []

    def of_program(pid):
        asked.append(pid)
        return None if len(asked) == without else real(pid)

    real = clocks.of_program
    hunt = hunt_of(folder, "waits", ttl="500ms", faults="pause:client")
    monkeypatch.setattr(clocks, "of_program", of_program)
    (run,) = played(hunt, Schedule())
    assert len(asked) == 2 and not run.hung and run.came_back
    assert grants(run, "client-1") and grants(run, "client-2")


def test_a_release_without_a_look_at_the_owner_is_found_with_a_long_lease(folder):
    hunt = hunt_of(folder, "no-owner-check", ttl="10s", faults="pause:client", budget="1200s")
    tried, find = hunt.carry_out(2)
    assert find is not None and {"lease_exclusion", "ownership"} & set(find.broken)
    assert tried.schedules and not tried.hung


def test_a_sound_lock_is_not_accused(folder):
    hunt = hunt_of(folder, ttl="10s", faults="pause:client,delay,packet/loss", budget="20s")
    tried, find = hunt.carry_out(2)
    assert find is None and tried.schedules and not tried.hung
