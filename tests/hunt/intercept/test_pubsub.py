"""Locks that subscribe, watch, or interrupt their main thread run in the simulation."""

from __future__ import annotations

from pathlib import Path

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.sim.schedule import Schedule

LOCKS = Path(__file__).parents[1] / "locks_pubsub.py"


def undisturbed(name):
    setting = described(f"{LOCKS}:{name}", {}, {"seed": 1}, servers="redis:1").setting
    return Run(setting, Schedule(), table(setting)).execute()


def outcomes(run, f):
    return [row[2] for row in run.rows if row[3] == f and row[2] != "invoke"]


def test_a_lock_that_waits_for_the_message_of_a_release_is_granted_and_released():
    run = undisturbed("Woken")
    assert outcomes(run, "acquire").count("ok") >= 2
    assert set(outcomes(run, "release")) == {"ok"}
    assert run.came_back


def test_a_lock_that_interrupts_its_main_thread_ends_its_process():
    run = undisturbed("Interrupting")
    ends = [row for row in run.rows if row[3] == "kill" and row[2] == "invoke"]
    assert "interrupts the main thread" in str(ends[0][4])


def test_a_process_that_ends_again_and_again_leaves_none_of_its_ops_open():
    ops = [row for row in undisturbed("Interrupting").rows if row[1] != "nemesis"]
    dead = [row[1] for row in ops if row[2] == "info"]
    assert len(dead) == len(set(dead)) >= 3
    for process in dead:
        *_, last = [row for row in ops if row[1] == process]
        assert last[2] == "info"
