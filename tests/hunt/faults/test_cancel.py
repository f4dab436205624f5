"""Cancelled calls: broken locks are found, and their sound twins are not accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checker.history.history import NEMESIS
from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting.hunts import described
from fencepost.hunt.bridge.bridge import bridge
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.search import search
from fencepost.hunt.sim.schedule import Aim, Schedule
from fencepost.workloads.contract.lock import CANCELLED

HERE = Path(__file__).parents[1]
LOCKS = HERE / "locks_cancelled.py"
SURVIVED = "cancel,pause,partition,delay,packet,kill:client"

slow = pytest.mark.slow


def asked(name, faults="cancel", after="close", file=LOCKS):
    settings = {"seed": 1, "after_cancel": after}
    return described(f"{file}:{name}", {}, settings, servers="redis:1", faults=faults)


def aimed(name, f, after, goes_on="close", file=LOCKS):
    """Cancel the first client's call, `after` steps after its op begins."""
    setting = asked(name, after=goes_on, file=file).setting
    actions = table(setting)
    (number,) = (n for n, action in enumerate(actions, 1) if action.client == 0)
    aims = [Aim(0, f, 0, after, number)]
    return Run(setting, Schedule(), actions, aims=aims).execute()


def of_clients(run, *processes):
    rows = (row for row in run.rows if row[1] != NEMESIS)
    return [
        (row[1], row[3], row[2], row[5].kind if row[5] else None)
        for row in rows
        if row[2] != "invoke" and row[1] in processes
    ]


def cancelled(name, f, goes_on="close"):
    """Return the client's ops from the first call on that was cancelled."""
    for after in range(1, 60):
        done = of_clients(aimed(name, f, after, goes_on), 0, 2)
        if (0, f, "info", CANCELLED) in done:
            return done[done.index((0, f, "info", CANCELLED)) :]
    raise AssertionError("no step of the call was cancelled")


@slow
def test_the_client_of_a_cancelled_acquire_closes_its_lock_and_asks_again_as_another_process():
    assert cancelled("Leased", "acquire")[:3] == [
        (0, "acquire", "info", CANCELLED), (0, "close", "ok", None), (2, "acquire", "ok", None),
    ]  # fmt: skip


@slow
def test_a_client_keeps_its_lock_after_a_cancelled_acquire_and_closes_it_after_a_release():
    assert cancelled("Leased", "acquire", "on")[1][:2] == (2, "acquire")
    assert cancelled("Leased", "release", "on")[1] == (0, "close", "ok", None)


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
    ("name", "faults", "after"),
    [
        ("Leased", SURVIVED, "close"),
        ("Leased", SURVIVED, "on"),
        ("GivesBack", "cancel", "close"),
        ("GivesBack", "cancel", "on"),
        ("GivesBackAtOnce", SURVIVED, "close"),
        ("GivesBackAtOnce", SURVIVED, "on"),
        ("SaysSo", SURVIVED, "close"),
        ("OneConnection", SURVIVED, "close"),
        ("OneConnection", SURVIVED, "on"),
    ],
)
def test_a_sound_lock_is_not_accused(name, faults, after):
    assert search(asked(name, faults, after).setting, 1, 600, processes=1, most=150).found is None


@slow
@pytest.mark.parametrize(
    ("name", "faults", "after", "broken"),
    [
        ("Leaves", "cancel", "close", "liveness"),
        ("Leaves", "cancel", "on", "liveness"),
        ("Swallows", "cancel", "close", "lease_exclusion"),
        ("ReadsTheEarlierAnswer", "cancel,pause:client", "on", "linearizable"),
    ],
)
def test_a_broken_one_is_found_and_is_the_users(name, faults, after, broken):
    _, find = asked(name, faults, after).carry_out(1)
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


def test_only_a_lock_of_ones_own_is_kept(setting):
    with pytest.raises(BadArguments, match="--after-cancel on is for a lock of your own"):
        setting("redis", "cancel", after_cancel="on")
