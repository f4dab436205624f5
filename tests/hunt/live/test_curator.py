"""Curator's recipes in hunts, unmodified, where Debian's packages are installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.harness.hunting.programs import conductor
from fencepost.hunt.faults.partition import OUTAGE
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live.conductor import Job
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.set_ups import waiting
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.world import MS
from fencepost.workloads.locks.registry import LOCKS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("javac") and Path("/usr/share/java/curator-recipes.jar").exists()),
        reason="needs Debian's default-jdk-headless and libcurator-recipes-java",
    ),
]
LANES = 6


@pytest.mark.parametrize("lock", ["curator", "curator-latch", "curator-selector"])
def test_candidates_and_clients_take_turns_and_no_promise_is_broken_without_a_fault(lock):
    hunt = described(lock, {}, {"seed": 1})
    with conductor(hunt.spec, hunt.setting, 1) as made:
        runs = list(made.play([Job(Schedule()), Job(Schedule((0, 0, 1, 0, 1)))]))
    for run in runs:
        assert run.came_back and not run.hung
        for name in ("client-1", "client-2"):
            done = [row[2:4] for row in run.rows if row[6] == name and row[2] != "invoke"]
            assert {("ok", f) for f in ("acquire", "read", "write", "release")} <= set(done)
        assert not violations(run, hunt.setting.goals)


def test_two_leaders_by_the_node_of_a_dead_session():
    """Its client gets another session before the server has ended the first (Curator 1121)."""
    hunt = described("curator-latch", {}, {"seed": 1}, faults="partition")
    outage = next(n for n, one in enumerate(table(hunt.setting), 1) if one.way == OUTAGE)
    head = next(waiting(hunt.setting))
    # Client-1 has asked, and waits. ZooKeeper's client rests for a random time before it connects
    # again, so not every schedule shows it.
    steps = [1 + 2 * place for place in range(5, 11)] * 4
    with conductor(hunt.spec, hunt.setting, LANES) as made:
        for run in made.play(Job(Schedule(head, ((step, outage),))) for step in steps):
            if "lease_exclusion" in violations(run, hunt.setting.goals):
                break
        else:
            raise AssertionError(f"no two leaders in {len(steps)} schedules")
    cut = next(row for row in run.rows if row[3] == "partition")
    led = [row for row in run.rows if row[2:4] == ("ok", "acquire")]
    mine = next(row for row in led if row[6] == "client-1")
    assert mine[0] > cut[0]
    # Its latch tells it nothing: it leads until it resigns.
    until = next(row[0] for row in run.rows if row[3] == "release" and row[1] == mine[1])
    assert not any(row[3] == "lost" and row[1] == mine[1] for row in run.rows)
    theirs = [row[0] for row in led if row[6] == "client-2" and mine[0] < row[0] < until]
    assert theirs and until - theirs[0] > 100 * MS


def test_a_mutex_that_compares_the_session_of_its_node_is_not_accused(tmp_path):
    root = Path(__file__).parents[3]
    sources = [Path(__file__).parent / "programs" / "Checked.java",
               root / "sdk" / "java" / "Fencepost.java"]  # fmt: skip
    jars = LOCKS["curator"].program
    path = jars[jars.index("-cp") + 1]
    subprocess.run(["javac", "-d", tmp_path, "-cp", path, *sources], check=True)
    hunt = described(
        "", {}, {"seed": 1, "ttl": "2s"}, servers="zookeeper:3", ship=tmp_path,
        program=f"java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp .:{path} Checked",
        faults="partition,delay,packet", budget="60s",
    )  # fmt: skip
    tried, find = hunt.carry_out(LANES)
    # A client that is cut off before it has a session may wait for longer than a run lasts.
    assert find is None and tried.hung <= tried.schedules // 5
    assert tried.injected["partition"]
