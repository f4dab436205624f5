"""CPython's event loop runs on virtual time: user locks of asyncio can be hunted."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.search import search
from fencepost.hunt.sim.schedule import Schedule

pytestmark = pytest.mark.slow

LOCKS = Path(__file__).parents[1] / "locks_asyncio.py"
SURVIVED = "pause,partition,delay,packet,kill:client"


def asked(name, faults=SURVIVED, seed=1):
    return described(f"{LOCKS}:{name}", {}, {"seed": seed}, servers="redis:1", faults=faults)


def undisturbed(name):
    setting = asked(name).setting
    return Run(setting, Schedule(), table(setting)).execute()


@pytest.mark.parametrize("name", ["Right", "Renews", "Tries"])
def test_it_is_granted_and_released_in_an_undisturbed_run(name):
    rows = undisturbed(name).rows
    assert [row[3] for row in rows if row[2] == "ok"].count("release") >= 2
    assert all(row[2] != "info" for row in rows)


@pytest.mark.parametrize("name", ["Right", "Renews"])
def test_a_sound_lock_is_not_accused(name):
    assert search(asked(name).setting, 1, 600, processes=1, most=150).found is None


def test_a_lock_without_timeouts_is_not_blamed_for_waiting_longer_than_tcp_would():
    """A message that was lost is not sent again in the simulation."""
    setting = asked("Patient", "partition,packet").setting
    assert search(setting, 1, 600, processes=1, most=300).found is None
    cut = next(n for n, one in enumerate(table(setting), 1) if one.way == "both")
    run = Run(setting, Schedule((), ((20, cut),)), table(setting)).execute()
    assert run.network.silence > setting.bound_ns


def test_a_broken_one_is_found():
    _, find = asked("Looks", "pause:client").carry_out(1)
    assert {"lease_exclusion", "ownership"} & set(find.broken)
    assert find.compared.inherent == ()


def test_a_lock_that_never_waits_ends_the_hunt():
    with pytest.raises(BadArguments, match="waits in a loop without a sleep"):
        asked("Spins").carry_out(1)


DIGEST = """
import hashlib, sys
from fencepost.harness.hunting.hunts import described
from fencepost.hunt.search.batch import Drawn, Searcher
asked = described(sys.argv[1], {}, {"seed": 1}, servers="redis:1")
searcher, digest = Searcher(asked.setting), hashlib.sha256()
for run, _ in searcher._drawn(Drawn(3, 1)):
    run.execute()
    digest.update(repr([row[:4] for row in run.rows] + [run.world.step]).encode())
print(digest.hexdigest())
"""


def test_a_schedule_is_the_same_in_every_process():
    seen = {
        subprocess.run(
            [sys.executable, "-c", DIGEST, f"{LOCKS}:Renews"], check=True, text=True,
            capture_output=True, env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(seen) == 1


def test_nothing_is_reported_about_tasks_of_a_run_that_is_over():
    done = subprocess.run(
        [sys.executable, "-c", DIGEST, f"{LOCKS}:Renews"], check=True, text=True,
        capture_output=True,
    )  # fmt: skip
    assert done.stderr == ""


def test_each_task_and_future_is_a_future_for_a_library_that_is_imported_after_a_hunt():
    undisturbed("Right")
    from asyncio import Future  # as such a library takes it

    async def kinds():
        loop = asyncio.get_running_loop()
        waiting = loop.create_future(), asyncio.Future(), asyncio.current_task()
        return [isinstance(one, Future) for one in (*waiting, kinds)]

    assert asyncio.run(kinds()) == [True, True, True, False]
