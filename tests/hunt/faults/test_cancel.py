"""Cancelled calls: broken locks are found, and their sound twins are not accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checker.history.history import NEMESIS
from fencepost.harness.hunting.hunts import described
from fencepost.harness.package import PACKAGE
from fencepost.hunt.bridge.bridge import bridge
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.search import search
from fencepost.hunt.sim.schedule import Aim, Schedule
from fencepost.workloads.contract.lock import CANCELLED

HERE = Path(__file__).parents[1]
LOCKS = HERE / "locks_cancelled.py"
CONNECTION = PACKAGE / "workloads" / "defects" / "cancel_connection_is_used_again.py"
SURVIVED = "cancel,pause,partition,delay,packet,kill:client"

slow = pytest.mark.slow


def asked(name, faults="cancel", file=LOCKS, **more):
    return described(f"{file}:{name}", {}, {"seed": 1, **more}, servers="redis:1", faults=faults)


def aimed(name, f, *afters, file=LOCKS, head=()):
    """Cancel the first client's call, `afters` steps after its op begins."""
    setting = asked(name, file=file).setting
    actions = table(setting)
    (number,) = (n for n, action in enumerate(actions, 1) if action.client == 0)
    aims = [Aim(0, f, 0, after, number) for after in afters]
    return Run(setting, Schedule(head), actions, aims=aims).execute()


def of_clients(run, *processes):
    rows = (row for row in run.rows if row[1] != NEMESIS)
    return [
        (row[1], row[3], row[2], row[5].kind if row[5] else None)
        for row in rows
        if row[2] != "invoke" and row[1] in processes
    ]


def cancelled(name, f, file=LOCKS, head=()):
    """Return the client's ops from the first call on that was cancelled."""
    for after in range(1, 60):
        done = of_clients(aimed(name, f, after, file=file, head=head), 0, 2)
        if (0, f, "info", CANCELLED) in done:
            return done[done.index((0, f, "info", CANCELLED)) :]
    raise AssertionError("no step of the call was cancelled")


@slow
@pytest.mark.parametrize("f", ["acquire", "release"])
def test_a_client_without_a_hold_keeps_its_lock_and_continues_as_another_process(f):
    cancelled_call, next_op = cancelled("Leased", f)[:2]
    assert cancelled_call == (0, f, "info", CANCELLED)
    assert next_op[0] == 2 and next_op[1] in ("acquire", "close")


@slow
def test_a_client_with_a_hold_closes_its_lock():
    extends = (0, 0, 0, 1)
    assert cancelled("Extends", "extend", head=extends)[1] == (0, "close", "ok", None)


@slow
def test_a_client_closes_its_lock_after_each_cancelled_call_if_asked_to():
    hunt = asked("DropsInClose", after_cancel="close")
    assert "--after-cancel close" in hunt.again()
    _, find = hunt.carry_out(1)
    assert list(find.broken) == ["liveness"] and find.compared.inherent == ()
    kept = asked("DropsInClose")
    assert "--after-cancel" not in kept.again()
    assert search(kept.setting, 1, 600, processes=1, most=300).found is None
    sound = asked("GivesBack", after_cancel="close").setting
    assert search(sound, 1, 600, processes=1, most=300).found is None


@slow
def test_a_client_whose_lock_does_not_run_in_an_event_loop_closes_it():
    done = cancelled("Right", "acquire", file=HERE / "locks.py")
    assert done[1] == (0, "close", "ok", None)


@slow
def test_a_call_that_is_cancelled_and_answers_counts_as_its_answer_says():
    swallowed = [aimed("Swallows", "acquire", after) for after in range(1, 40)]
    assert all((0, "acquire", "ok", None) in of_clients(run, 0) for run in swallowed)
    certain = {
        row for after in range(1, 40) for row in of_clients(aimed("SaysSo", "acquire", after), 0)
    }
    assert (0, "acquire", "fail", "not-granted") in certain
    assert (0, "acquire", "info", CANCELLED) not in certain


@slow
def test_the_fault_is_in_the_history_if_a_call_was_cancelled_and_only_then():
    during = [row for row in aimed("Leased", "acquire", 3).rows if row[1] == NEMESIS]
    assert [row[4]["phase"] for row in during] == ["start", "start", "end", "end"]
    assert during[0][4]["impairs"] == []
    outside = aimed("Leased", "read", 0).rows
    assert not [row for row in outside if row[1] == NEMESIS]


@slow
@pytest.mark.parametrize(
    ("name", "faults", "file"),
    [
        ("Leased", SURVIVED, LOCKS),
        ("Extends", SURVIVED, LOCKS),
        ("GivesBack", "cancel", LOCKS),
        ("GivesBackAtOnce", SURVIVED, LOCKS),
        ("SaysSo", SURVIVED, LOCKS),
        ("Sound", SURVIVED, CONNECTION),
    ],
)
def test_a_sound_lock_is_not_accused(name, faults, file):
    assert search(asked(name, faults, file).setting, 1, 600, processes=1, most=150).found is None


@slow
@pytest.mark.parametrize(
    ("name", "faults", "broken", "file"),
    [
        ("Leaves", "cancel", "liveness", LOCKS),
        ("Swallows", "cancel", "lease_exclusion", LOCKS),
        ("Lock", "cancel,pause:client", "linearizable", CONNECTION),
    ],
)
def test_a_broken_one_is_found_and_is_the_users(name, faults, broken, file):
    _, find = asked(name, faults, file).carry_out(1)
    assert broken in find.broken
    assert "cancel" in find.run.faults.families
    assert find.compared.inherent == () and find.compared.schedules


@slow
def test_a_lock_that_any_fault_breaks_is_told_by_a_cancelled_call():
    hunt = asked("Leaves", None)
    _, find = hunt.carry_out(1)
    assert set(find.run.faults.families) == {"cancel"}
    made = bridge(hunt.setting, find)
    assert any("is cancelled" in why for why in made.cannot)  # real servers cannot confirm it


@slow
def test_locks_of_asyncio_have_the_fault_and_others_on_request():
    assert "cancel" in asked("Leased", None).setting.faults
    other = asked("Right", None, file=HERE / "locks.py").setting.faults
    assert other and "cancel" not in other


@slow
def test_a_cancelled_call_of_another_lock_is_interrupted_where_it_waits():
    file = HERE / "locks.py"
    done = {
        row
        for after in range(1, 12)
        for row in of_clients(aimed("Right", "acquire", after, file=file), 0)
    }
    assert (0, "acquire", "info", CANCELLED) in done
    setting = asked("Right", "cancel", file=file).setting
    assert search(setting, 1, 600, processes=1, most=300).found is None


def test_the_locks_of_the_registry_survive_it(setting):
    for lock in ("redis", "redlock", "etcd"):
        assert search(setting(lock, "cancel"), 1, 600, processes=1, most=300).found is None


def test_actions_of_other_faults_have_the_same_numbers_with_and_without_it(setting):
    others = "clock,pause,partition,delay,packet,kill"
    without = [(one.kind, one.way) for one in table(setting("redis", others))]
    with_it = [(one.kind, one.way) for one in table(setting("redis", f"cancel,{others}"))]
    assert with_it[: len(without)] == without


@slow
def test_a_call_is_cancelled_once_however_often_it_is_asked_for():
    for after in range(1, 40):
        run = aimed("SaysSo", "acquire", after, after, after + 1, after + 2)
        faults = [row for row in run.rows if row[1] == NEMESIS and row[2] == "ok"]
        ended = [one for one in of_clients(run, 0, 2) if one[1] == "acquire"]
        assert len(faults) <= 2 and ended[-1][2] == "ok", after


@slow
def test_every_fault_of_the_history_has_reached_a_call():
    for f in ("acquire", "release"):
        for after in range(1, 60):
            run = aimed("Leased", f, after)
            faults = [row for row in run.rows if row[1] == NEMESIS and row[2] == "ok"]
            kinds = [kind for _, _, _, kind in of_clients(run, 0, 2)]
            assert len(faults) == 2 * kinds.count(CANCELLED), (f, after)
