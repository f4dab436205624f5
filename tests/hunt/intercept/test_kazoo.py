"""Locks on kazoo are hunted unchanged: fencepost's own, kazoo's recipes, and those of users."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.search.hunt import hunt
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.single import single
from fencepost.hunt.sim import record
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.story.story import numbered
from tests.hunt.processes import assert_same_digest
from tests.hunt.sound import assert_not_accused

pytest.importorskip("kazoo")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
LOCKS = ROOT / "tests" / "hunt" / "locks_zookeeper.py"
RECIPES = [f"{LOCKS}:{name}" for name in ("Recipe", "Semaphore", "Election")]
OWN = f"{LOCKS}:Own"
NAMES = ["zookeeper", "kazoo", *RECIPES, OWN]


def setting(lock, faults=None, goal=None):
    servers = "zookeeper:1" if ":" in lock else ""
    return described(lock, {}, {"seed": 1}, servers=servers, faults=faults, goal=goal).setting


def drawn(one, count):
    actions, chance = table(one), Random(5)
    drawer = Drawer(one, actions, 500, {})
    for _ in range(count):
        schedule, aims = drawer.draw(chance)
        yield Run(one, schedule, actions, aims=aims).execute()


def short(lock):
    return lock.rpartition(":")[2]


ALL = pytest.mark.parametrize("lock", NAMES, ids=short)


@ALL
def test_a_lock_on_kazoo_works_without_faults(lock):
    one = setting(lock)
    run = Run(one, Schedule(), table(one)).execute()
    assert run.came_back
    assert [row[3] for row in run.rows if row[2:4] == ("ok", "write")] == ["write"] * 2


@ALL
def test_a_run_is_replayed_from_its_list_of_integers(lock):
    one = setting(lock)
    for run in drawn(one, 15):
        again = Run(one, run.exact_schedule, table(one)).execute()
        assert record.lines(again.rows) == record.lines(run.rows)


HISTORIES = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from fencepost.hunt.sim import record
from tests.hunt.intercept.test_kazoo import drawn, setting

one = setting(sys.argv[2])
found = hashlib.sha256()
if sys.flags.hash_randomization:
    import kazoo.client  # loaded before the first run, or in it
    found_before = list(drawn(one, 1))
for run in drawn(one, 25):
    found.update(record.lines(run.rows))
print(found.hexdigest())
"""


@ALL
def test_its_histories_are_the_same_bytes_in_every_process(lock):
    assert_same_digest(HISTORIES, str(ROOT), lock)


@pytest.mark.parametrize("lock", ["zookeeper", OWN], ids=short)
def test_a_sound_lock_is_not_accused(lock):
    assert_not_accused(setting(lock), 150)


def test_a_killed_client_says_nothing_more_although_its_code_is_ended_as_an_exception_does():
    """kazoo reports its session as LOST while its threads are ended, and the lock its hold."""
    one, killed = setting("kazoo", "kill:client"), 0
    for run in drawn(one, 60):
        for place, row in enumerate(run.rows):
            if row[3] == "kill" and row[2] == "ok" and row[4]["phase"] == "start":
                (client,) = row[4]["targets"]
                killed += 1
                later = [r for r in run.rows[place + 1 :] if r[6] == client]
                assert [r for r in later if r[5] is None or r[5].kind != "killed"] == []
    assert killed > 20


def test_a_cut_that_would_last_until_the_end_ends_if_kazoo_waits_for_it():
    one = setting("kazoo", "partition")
    actions = table(one)
    cut = next(
        number
        for number, action in enumerate(actions, 1)
        if action.inject.args[0] == (0, 1) and len(action.inject.args[1]) == 3
        and action.inject.args[2:] == ("both", None)
    )  # fmt: skip
    run = Run(one, Schedule((), ((200, cut),)), actions).execute()
    (end,) = (row for row in run.rows if row[2] == "ok" and row[4].get("phase") == "end")
    assert end[0] == 3 * one.ttl_ns
    assert run.worked_ns > end[0] and run.came_back


def test_a_znode_that_outlives_its_session_is_found_after_the_kill_of_its_holder():
    one = setting(f"{LOCKS}:Persistent", "kill:client", "liveness")
    _, found = hunt(one, 1, 300, processes=1)
    assert found is not None
    assert "is killed" in "\n".join(numbered(found.story))


def test_an_ephemeral_znode_is_gone_once_the_session_of_a_killed_holder_has_expired():
    assert_not_accused(setting(OWN, "kill:client", "liveness"), 100)


def test_kazoo_s_lock_leaves_a_contender_behind_if_it_gives_up_without_a_connection():
    """kazoo's issue 732."""
    _, found = hunt(setting(f"{LOCKS}:Election", goal="liveness"), 1, 300, processes=1)
    assert found is not None
    assert "asks for the lock in vain, although no other client asks" in "\n".join(
        numbered(found.story)
    )


def test_a_client_that_was_paused_past_its_session_is_granted_kazoo_s_lock():
    """The counterexample is the same with any number of processes."""
    one = setting("kazoo", "pause", "lease_exclusion")
    alone, together = (hunt(one, 1, 300, processes=number)[1] for number in (1, 2))
    assert alone is not None and together is not None
    assert "is paused for" in "\n".join(numbered(alone.story))
    assert alone.schedule == together.schedule


def test_faults_outlast_the_sessions_of_a_user_lock():
    """kazoo asks for 10 s by default."""
    asked = described(
        f"{LOCKS}:DeletesPlainly", {}, {"seed": 1}, servers="zookeeper:1", faults="pause:client"
    )
    assert asked.setting.lease_ns > 10_000_000_000 > asked.setting.ttl_ns
    actions = table(asked.setting)
    found = (
        violations(Run(asked.setting, one, actions).execute(), asked.setting.goals)
        for one in single(asked.setting, actions)[:40]
    )
    assert any(found)
