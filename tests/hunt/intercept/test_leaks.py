"""No chance and no time reaches a lock's code but from the schedule."""

from __future__ import annotations

import copy
import datetime
import os
import pickle
import random
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from fencepost.harness.hunting.hunts import setting_of
from fencepost.harness.spec import from_arguments
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.hunt.faults.registry import table
from fencepost.hunt.intercept import patches
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.run import Run
from fencepost.hunt.search import twin
from fencepost.hunt.search.search import search
from fencepost.hunt.search.twin import Trace, difference, moments
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.unknown import Unknown
from fencepost.workloads.contract.lock import Failed
from tests.hunt.processes import assert_same_digest

HERE = Path(__file__).parents[1]
ROOT = HERE.parents[1]


def own(name, file="leaks", faults="pause"):
    lock, found = resolve(f"{HERE / file}.py:{name}", LockRequest(servers="redis:1"))
    spec = from_arguments.spec(lock, {}, {"concurrency": 2, "seed": 1}, found)
    return setting_of(spec, faults, None, False)


def secrets_of(setting, head=()):
    """Return the secrets of a run, each of which depends on every source of chance and time."""

    class Secrets(Trace):
        def handled(self, link, command, reply):
            if command[0] == "SET":
                found.append((link.client.name, command[2]))

    found = []
    Run(setting, Schedule(head), table(setting), Secrets()).execute()
    return found


def test_a_schedule_gives_the_same_values_of_every_source_again():
    setting = own("Everything")
    first = secrets_of(setting)
    assert len(first) > 3 and len(set(first)) == len(first)
    random.random()
    assert secrets_of(setting) == first
    assert secrets_of(setting, (5,)) != first


def test_the_processors_that_the_hunt_may_use_do_not_reach_the_lock():
    setting, mine = own("Everything"), os.sched_getaffinity(0)
    if len(mine) < 2:
        pytest.skip("this process may use one processor only")
    first = secrets_of(setting)
    os.sched_setaffinity(0, {min(mine)})
    try:
        assert secrets_of(setting) == first
    finally:
        os.sched_setaffinity(0, mine)


SECRETS = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from tests.hunt.intercept.test_leaks import own, secrets_of
print(hashlib.sha256(repr(secrets_of(own("Everything"))).encode()).hexdigest())
"""


@pytest.mark.slow
def test_it_gives_the_same_values_in_every_process():
    assert_same_digest(SECRETS, str(ROOT))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Opens", "it opens /dev/urandom, which is not simulated: use os.urandom"),
        ("Writes", "it writes the file .*count, which later runs would find"),
        ("Exports", "it changes the environment variable COUNT"),
    ],
)
def test_what_would_outlive_a_run_is_refused(name, said):
    with pytest.raises(Unknown, match=said):
        moments_of(own(name))


def moments_of(setting):
    Run(setting, Schedule(), table(setting)).execute()


def test_outside_of_a_run_the_sources_are_those_of_python(tmp_path, monkeypatch):
    secrets_of(own("Everything"))
    patches.put()
    assert random.Random().random() != random.Random().random()
    assert abs(datetime.datetime.now().timestamp() - time.time()) < 60
    assert abs(time.mktime(time.localtime()) - time.time()) < 60
    assert datetime.date.today() == datetime.datetime.now().date()
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("FENCEPOST_A_NAME", "x")


def test_dates_count_as_dates_whether_or_not_they_were_made_before():
    patches.put()
    before = (datetime.datetime.real(2024, 1, 2, 3), datetime.date.real(2024, 1, 2))
    for moment in (datetime.datetime(2024, 1, 2, 3), before[0]):
        assert isinstance(moment, datetime.datetime) and isinstance(moment, datetime.date)
        assert pickle.loads(pickle.dumps(moment)) == copy.deepcopy(moment) == before[0]
    assert not isinstance(before[1], datetime.datetime)
    assert issubclass(datetime.datetime, datetime.date)
    assert pickle.loads(pickle.dumps(before[1])) == datetime.date(2024, 1, 2)


# Runs are repeated.


def test_two_runs_of_a_schedule_have_no_difference():
    setting = own("Everything")
    assert difference(moments(setting, Schedule()), moments(setting, Schedule())) is None


def test_the_first_call_that_differs_is_named():
    one = [(0, "client-1 has acquire invoke"), (1_000_000, "client-1 sends GET a to redis-1")]
    found = difference(one, [one[0], (1_000_000, "client-1 sends GET b to redis-1")])
    assert "differed from 0.001000 s on. In one, client-1 sends GET a" in str(found)
    assert "in the other, client-1 sends GET b" in str(found)
    assert "in the other, nothing more" in str(difference(one, one[:1]))


def test_the_address_of_an_object_in_an_error_is_no_difference():
    """Errors of urllib3 have one: Failed to resolve host (<HTTPConnection object at 0x7f..>)."""
    one, other = (Failed("raised", f"<Connection at {at:#x}> is closed") for at in (1, 2))
    rows = [[(0, 0, "info", "acquire", {}, error, "client-1", 1)] for error in (one, other)]
    assert difference(*(Trace().moments(row) for row in rows)) is None


def test_a_counter_of_a_library_begins_anew_with_each_run(monkeypatch):
    """asyncpg numbers its statements over all connections of a process."""
    module = SimpleNamespace(_uid=3)
    monkeypatch.setitem(sys.modules, "asyncpg.connection", module)
    moments(own("Everything"), Schedule())
    assert module._uid == 0


def test_a_library_s_data_that_outlives_a_run_is_a_difference():
    setting = own("Keeps")
    assert "seen-" in str(difference(moments(setting, Schedule()), moments(setting, Schedule())))


def test_a_request_is_recorded_at_its_arrival_whether_or_not_an_action_may_come_before_its_reply():
    class StepByStep(Run):
        """Takes no short cut, because an action may be due at each step."""

        def _next(self):
            return self.world.step + 1

    setting, traces = own("Everything"), (Trace(), Trace())
    one, other = (
        kind(setting, Schedule(), (), trace).execute()
        for kind, trace in zip((Run, StepByStep), traces, strict=True)
    )
    assert traces[0].moments(one.rows) == traces[1].moments(other.rows)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_hunt_whose_runs_depend_on_the_order_of_a_set_ends_with_the_first_difference(
    monkeypatch, processes
):
    monkeypatch.setattr(twin, "AFTER_S", 0)
    with pytest.raises(Unknown, match=r"cannot be repeated: .* client-[12] sends GET"):
        search(own("Hashes", faults="packet/duplicate"), 1, 60, processes, most=400)


@pytest.mark.slow
def test_a_hunt_whose_runs_depend_on_the_schedule_alone_ends_as_without_a_twin(monkeypatch):
    monkeypatch.setattr(twin, "AFTER_S", 0)
    tried = search(own("Everything", faults="packet/duplicate"), 1, 600, 1, most=400)
    assert tried.schedules >= 400 and (tried.found, tried.failure) == (None, "")


# Loops.


def test_a_loop_without_a_sleep_is_named_as_such(monkeypatch):
    monkeypatch.setattr(Run, "most_steps", 3000)
    monkeypatch.setattr(Run, "last_steps", 1000)
    with pytest.raises(Unknown, match=r"waits in a loop without a sleep .*locks.py:\d+\)\. Code"):
        moments_of(own("Loops", "locks"))


def test_an_op_that_waits_without_an_end_is_named_with_the_lock_s_own_line(monkeypatch):
    monkeypatch.setattr(Run, "most_steps", 3000)
    monkeypatch.setattr(Run, "last_steps", 1000)
    with pytest.raises(LockError, match=r"3,000 steps .*locks.py:\d+\): its op still waits after"):
        moments_of(own("Insists", "locks"))
