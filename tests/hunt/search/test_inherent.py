"""A counterexample of a user lock is its own, or inherent to its servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.search.batch import Batch
from fencepost.hunt.search.inherent import compared
from fencepost.hunt.search.search import search
from fencepost.hunt.sim.unknown import Unknown

LOCKS = Path(__file__).parents[1] / "locks.py"
POSTGRES = LOCKS.with_name("locks_postgres_raw.py")
ZOOKEEPER = LOCKS.with_name("locks_zookeeper.py")


def hunted(name, faults, file=LOCKS, servers="redis:1", **more):
    asked = described(f"{file}:{name}", {}, {"seed": 1}, servers=servers, faults=faults, **more)
    return asked, *asked.carry_out(1)


@pytest.mark.parametrize("fault", ["clock", "kill:one"])
@pytest.mark.slow
def test_a_find_is_inherent_if_the_same_faults_break_the_reference_lock(fault):
    asked, tried, find = hunted("Right", fault)
    assert find.compared.inherent == (fault,)
    assert find.compared.lock == "redis"
    assert find.compared.story
    assert (
        "Inherent: on one Redis server without persistence, lease_exclusion"
        in (asked.compared(tried, find)[0])
    )


@pytest.mark.slow
def test_the_search_goes_on_for_the_defect_of_the_lock():
    asked, tried, find = hunted("Looks", "clock,pause:client")
    assert [one.inherent for one in tried.inherent] in ([], [("clock",)])
    assert find.compared.inherent == ()
    assert not any("clock" in words for words in find.compared.story)
    assert asked.compared(tried, find)[-1].startswith("Yours: `redis`")


def test_inherent_ones_end_a_hunt_on_request():
    asked = described(
        f"{LOCKS}:Right", {}, {"seed": 1}, servers="redis:1", faults="clock,pause", inherent=True
    )
    tried, find = asked.carry_out(1)
    assert find.compared.inherent == ("clock",)
    assert not tried.inherent
    assert "--inherent" in asked.again()


class Batches:
    """A searcher whose batches have these results: a number of schedules, or an error."""

    def __init__(self, *results):
        self._results = iter(results)

    def batch(self, work):
        result = next(self._results)
        if isinstance(result, Unknown):
            raise result
        return Batch(tried=result)


def compared_by(monkeypatch, *results):
    made = Batches(*results)
    monkeypatch.setattr("fencepost.hunt.search.inherent.Searcher", lambda setting: made)
    setting = described("redis", {}, {"seed": 1}, faults="clock").setting
    return compared(setting, "lease_exclusion", {"clock"}, 1)


def test_a_batch_in_which_the_reference_cannot_be_simulated_does_not_count(monkeypatch):
    found = compared_by(monkeypatch, 50, Unknown("a loop"), *[50] * 6)
    assert (found.inherent, found.schedules) == ((), 350)


def test_a_reference_that_cannot_be_simulated_at_all_survives_nothing(monkeypatch):
    with pytest.raises(Unknown, match="a loop"):
        compared_by(monkeypatch, *[Unknown("a loop")] * 8)


def test_a_lock_of_the_registry_is_compared_with_none():
    asked = described("redis", {}, {"seed": 1}, faults="clock")
    tried, find = asked.carry_out(1)
    assert find.compared is None
    assert asked.compared(tried, find) == []


@pytest.mark.parametrize(("servers", "lock"), [("redis:1", "redis"), ("redis:3", "redlock")])
def test_the_reference_lock_runs_on_the_same_servers(servers, lock):
    asked = described(f"{LOCKS}:Right", {}, {}, servers=servers)
    reference = asked.setting.reference
    assert (reference.lock, reference.servers) == (lock, asked.setting.servers)
    assert reference.own is None
    assert reference.test["servers"] == asked.setting.test["servers"]


def test_the_reference_lock_keeps_the_goals_that_it_gives_something_to_check():
    counted = f"{LOCKS}:Counted"
    asked = described(counted, {}, {}, servers="redis:3", goal="fencing,lease_exclusion")
    assert asked.setting.goals == ("lease_exclusion", "fencing")
    assert asked.setting.reference.goals == ("lease_exclusion",)


def test_a_reference_lock_without_tokens_has_its_own_goals_where_the_goal_is_fencing():
    asked = described(f"{LOCKS}:Counted", {}, {}, servers="redis:3", goal="fencing")
    assert asked.setting.goals == ("fencing",)
    assert asked.setting.reference.goals == (described("redlock", {}, {}).setting.goals)


@pytest.mark.slow
def test_a_sound_lock_with_tokens_is_not_accused_because_the_resource_heeds_them():
    asked = described(f"{LOCKS}:Counted", {}, {"seed": 1}, servers="redis:1", faults="pause,delay")
    assert asked.setting.guard == "fenced"
    assert "resource" not in asked.setting.goals
    assert search(asked.setting, 1, 600, processes=1, most=200).found is None
    assert described(f"{LOCKS}:Right", {}, {}, servers="redis:1").setting.guard == "none"


def test_a_lock_that_breaks_without_a_fault_is_not_compared():
    setting = described(f"{LOCKS}:Right", {}, {}, servers="redis:1").setting
    found = compared(setting.reference, "lease_exclusion", set(), 1)
    assert (found.inherent, found.schedules) == ((), 0)
    assert found.sentence("one Redis server") == "Yours: it needs no fault."


@pytest.mark.parametrize(
    ("file", "name", "servers", "ends_with", "lock"),
    [
        (ZOOKEEPER, "Own", "zookeeper:1", "", "zookeeper"),
        (POSTGRES, "Advisory", "postgres", "", "postgres"),
        (POSTGRES, "Advisory", "postgres", "lease", "postgres-lease"),
        (POSTGRES, "Lease", "postgres", "", "postgres-lease"),
        (POSTGRES, "Advisory", "pgbouncer", "", None),
    ],
)
def test_the_reference_lock_ends_its_grants_in_the_same_way(file, name, servers, ends_with, lock):
    asked = described(f"{file}:{name}", {}, {}, servers=servers, ends_with=ends_with)
    reference = asked.setting.reference
    assert (reference and reference.lock) == lock
    if reference is not None:
        assert reference.servers == asked.setting.servers


@pytest.mark.parametrize(
    ("file", "name", "servers", "fault", "lock"),
    [
        (POSTGRES, "Advisory", "postgres", "kill:one", "postgres"),
        (POSTGRES, "Lease", "postgres", "clock", "postgres-lease"),
        (ZOOKEEPER, "Own", "zookeeper:1", "pause:client", "zookeeper"),
    ],
)
@pytest.mark.slow
def test_a_find_on_servers_with_sessions_is_inherent_if_it_breaks_the_reference_lock(
    file, name, servers, fault, lock
):
    # A session that ends takes the lock from a holder who still believes; so does a lease that
    # the server's clock ends.
    goal = "lease_exclusion" if fault == "clock" else "mutual_exclusion"
    setting = described(f"{file}:{name}", {}, {}, servers=servers, faults=fault, goal=goal).setting
    found = compared(setting.reference, goal, {fault}, 1)
    assert (found.lock, found.inherent) == (lock, (fault,))
    assert "Inherent: on one server" in found.sentence("one server")


@pytest.mark.parametrize(
    ("file", "name", "servers", "faults", "lock"),
    [
        (POSTGRES, "SilenceIsConsent", "postgres", "partition", "postgres"),
        (ZOOKEEPER, "Persistent", "zookeeper:1", "kill:client", "zookeeper"),
    ],
)
@pytest.mark.slow
def test_a_find_on_servers_with_sessions_is_the_lock_s_own_if_the_reference_lock_survives(
    file, name, servers, faults, lock
):
    asked, tried, find = hunted(name, faults, file, servers, budget="600s")
    assert (find.compared.inherent, find.compared.lock) == ((), lock)
    assert find.compared.schedules >= 200
    assert asked.compared(tried, find)[-1].startswith(f"Yours: `{lock}`")


@pytest.mark.slow
def test_a_sound_lease_in_a_row_is_not_blamed_for_a_jump_of_the_server_s_clock():
    asked, tried, find = hunted("Lease", "clock", POSTGRES, "postgres", budget="600s")
    assert find.compared.inherent == ("clock",)
    assert asked.compared(tried, find)[-1].startswith("Inherent: on one PostgreSQL server,")
