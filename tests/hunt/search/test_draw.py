"""What schedules a hunt draws for a user lock."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.search.batch import Searcher
from fencepost.hunt.search.draw import Drawer
from fencepost.hunt.search.lengths import Counting
from fencepost.hunt.sim.schedule import EACH, HEAD, Schedule
from fencepost.hunt.work import BEGINS, MORE

LOCKS = Path(__file__).parents[1] / "locks_asyncio.py"


@pytest.fixture(scope="module")
def one():
    faults = "pause,partition,delay"
    return described(f"{LOCKS}:Looks", {}, {"seed": 1}, servers="redis:1", faults=faults).setting


def drawn(setting, lengths, count=4000):
    drawer, random = Drawer(setting, table(setting), 400, {}, lengths=lengths), Random(1)
    return [drawer.draw(random) for _ in range(count)]


def test_the_steps_of_an_asyncio_lock_s_ops_are_counted(one):
    counting = Counting(one, Schedule(), table(one))
    counting.execute()
    # It looks, and then deletes.
    assert counting.lengths["release"] > 20 > counting.lengths["read"]


def test_a_stall_reaches_each_step_of_a_long_op(one):
    lengths = {"release": 30}
    places = {aim.after for _, aims in drawn(one, lengths) for aim in aims if aim.f == "release"}
    assert places >= set(range(30))
    assert max(aim.after for _, aims in drawn(one, None) for aim in aims) < 15


def test_one_client_stalls_while_another_waits_for_the_end_of_its_lease(one):
    actions, begins = table(one), [HEAD + EACH * client + BEGINS for client in (0, 1)]
    found = 0
    for schedule, aims in drawn(one, {"release": 30}):
        if len(aims) == 1 and aims[0].f == "release":
            stalled, action = aims[0].client, actions[aims[0].action - 1]
            waits = schedule.at(begins[1 - stalled]) == 2 and schedule.at(begins[stalled]) == 0
            again = schedule.at(HEAD + EACH * stalled + MORE) == 1
            found += waits and again and action.kind in ("pause", "delay")
    # 15 % stall or work past their lease; half of those that stall do so in release.
    assert 150 < found < 450


def test_only_user_locks_are_drawn_so(one, setting):
    assert Searcher(one)._lengths
    assert Searcher(setting("redis", "pause"))._lengths is None
