"""The simple schedules of a user lock, and the defects that they find."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.batch import SIZE, Searcher, Simple
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.search import search
from fencepost.hunt.search.set_ups import set_ups
from fencepost.hunt.search.single import single
from fencepost.hunt.sim.schedule import Schedule

pytestmark = pytest.mark.slow

LOCKS = Path(__file__).parents[1] / "locks_asyncio.py"
SURVIVED = "pause,partition,delay,packet,kill:client"
MOST = 450
"""Among this number of first schedules, one breaks each defect here, and none a sound twin."""


def asked(name, servers="redis:1", faults=SURVIVED):
    return described(f"{LOCKS}:{name}", {}, {"seed": 1}, servers=servers, faults=faults).setting


def found_by(setting, most):
    """Return the place of the first of the simple schedules that breaks the lock, or None."""
    actions = table(setting)
    for place, one in enumerate(single(setting, actions)[:most]):
        if violations(Run(setting, one, actions).execute(), setting.goals):
            return place
    return None


def test_set_ups_come_first_and_each_schedule_once():
    setting = asked("Right")
    found = single(setting, table(setting))
    heads = list(set_ups(setting))
    assert found[: len(heads)] == [Schedule(head) for head in heads]
    assert len(found) == len(set(found))
    assert {one.head for one in found} == set(heads)


def test_a_client_stops_in_each_gap_between_the_messages_of_each_op():
    setting = asked("Watches", faults="pause:client")
    actions = table(setting)
    heads = list(set_ups(setting))
    stops = [one for one in single(setting, actions) if one.injections and one.head == heads[2]]
    stopped = set()
    for one in stops:
        run = Run(setting, one, actions).execute()
        stopped.update((ops[0], met) for kind, _, met, *ops in run.struck if kind == "pause")
    assert {op for op, _ in stopped} == {"acquire", "release", "work"}


def test_only_faults_of_the_first_client_and_of_messages_are_injected():
    setting = asked("Right", faults="pause,delay,packet,kill,partition")
    actions = table(setting)
    used = {number for one in single(setting, actions) for _, number in one.injections}
    assert {actions[n - 1].client for n in used if actions[n - 1].kind in ("pause", "kill")} == {0}
    assert {actions[n - 1].kind for n in used} == {"pause", "delay", "packet/loss", "kill"}


@pytest.mark.parametrize(
    ("name", "servers", "most"),
    [("Looks", "redis:1", 100), ("DeletesBlindly", "redis:1", 100),
     ("CountsLateVotes", "redis:3", MOST)],
)  # fmt: skip
def test_one_of_them_breaks_a_lock_with_a_narrow_defect(name, servers, most):
    assert found_by(asked(name, servers), most) is not None


@pytest.mark.parametrize(
    ("name", "servers"), [("Right", "redis:1"), ("Watches", "redis:1"), ("Votes", "redis:3")]
)
def test_none_of_them_breaks_its_sound_twin(name, servers):
    assert found_by(asked(name, servers), MOST) is None


def test_a_hunt_tries_them_beside_those_that_it_draws_and_counts_them_apart():
    tried = search(asked("Right", faults="pause:client"), 1, 600, processes=1, most=4 * SIZE)
    assert tried.simple == 2 * SIZE == tried.drawn
    assert tried.simple_batches == 2


def test_after_the_last_of_them_a_hunt_only_draws():
    setting = asked("Right", faults="kill:client")
    count = len(single(setting, table(setting)))
    tried = search(setting, 1, 600, processes=1, most=2 * count + 4 * SIZE)
    assert tried.all_simple and tried.simple == count


def test_faults_that_are_left_out_are_not_injected():
    setting = asked("Right", faults="pause,delay")
    pauses = frozenset(n for n, one in enumerate(table(setting), 1) if one.kind == "pause")
    searcher = Searcher(setting)
    batches = [searcher.batch(Simple(number, pauses)) for number in range(6)]
    assert {kind for made in batches for kind in made.injected} == {"delay"}
    assert {kind for made in (searcher.batch(Simple(0)),) for kind in made.injected} == {"pause"}
