"""Calls of a lock that never end: the lock is blamed if a client asks for a free lock in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.harness.errors import Crashed
from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.run import Run
from fencepost.hunt.search.batch import Drawn, Searcher
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.search import search
from fencepost.hunt.sim.schedule import Schedule

pytestmark = pytest.mark.slow

LOCKS = Path(__file__).parent / "locks_pubsub.py"
SURVIVED = "pause,partition,delay,packet,kill:client"


def asked(name, faults=SURVIVED):
    return described(f"{LOCKS}:{name}", {}, {"seed": 1}, servers="redis:1", faults=faults)


@pytest.mark.parametrize(
    ("name", "needs", "ends"),
    [("ListensForEver", "pause", True), ("KeptForEver", "kill:client", False)],
)
def test_a_client_that_waits_in_vain_for_a_free_lock_is_found(name, needs, ends):
    """A client that listens ends with its connection, after a quarter of an hour."""
    _, find = asked(name, needs).carry_out(1)
    assert list(find.broken) == ["liveness"] and find.compared.inherent == ()
    waits = [row for row in find.run.rows if row[2:4] == ("info", "acquire")]
    assert find.run.waits_forever is not ends
    assert ends or "does not end" in waits[-1][5].text


def test_a_lock_that_waits_without_a_limit_and_asks_again_is_not_accused():
    tried = search(asked("ListensAndAsks").setting, 1, 600, processes=1, most=300)
    assert tried.found is None


def test_faults_that_last_for_as_long_as_the_clients_work_do_not_make_a_lock_wait_for_ever():
    setting = asked("ListensAndAsks", "partition").setting
    cut = next(n for n, one in enumerate(table(setting), 1) if one.way == "both")
    run = Run(setting, Schedule((), ((40, cut),)), table(setting)).execute()
    assert not run.waits_forever and run.came_back


def test_a_call_that_never_ends_without_a_fault_and_breaks_no_promise_is_an_error():
    with pytest.raises(Crashed, match="a call of the lock does not end, although no fault"):
        asked("ReleasesForEver", "pause").carry_out(1)


def test_a_client_without_a_timeout_that_waits_for_a_lost_answer_ends_the_run():
    """The other client was killed: its events never come."""
    file = LOCKS.parent / "locks_asyncio.py"
    one = described(
        f"{file}:Patient", {}, {"seed": 1}, servers="redis:1", faults="packet,kill:client"
    ).setting
    searcher = Searcher(one)
    runs = [run.execute() for number in range(4) for run, _ in searcher._drawn(Drawn(1, number))]
    ended = [run for run in runs if run.waits_forever and "kill" in run.faults.families]
    assert ended and not any(violations(run, one.goals, surely=True) for run in ended)


@pytest.mark.parametrize("name", ["Right", "Renews"])
def test_a_run_that_takes_too_many_steps_ends_with_an_error_wherever_it_is(name, monkeypatch):
    file = LOCKS.parent / "locks_asyncio.py"
    one = described(f"{file}:{name}", {}, {"seed": 1}, servers="redis:1", faults="pause").setting
    for most in range(100, 130):
        monkeypatch.setattr(Run, "most_steps", most)
        monkeypatch.setattr(Run, "last_steps", most - 1)
        with pytest.raises(LockError, match="does not terminate within"):
            Run(one, Schedule(), table(one)).execute()


def test_a_lock_that_each_refused_request_prolongs_is_found():
    file = LOCKS.parent / "locks.py"
    hunt = described(f"{file}:Prolongs", {}, {"seed": 1}, servers="redis:1", faults="kill:client")
    _, find = hunt.carry_out(1)
    assert list(find.broken) == ["liveness"] and find.compared.inherent == ()
