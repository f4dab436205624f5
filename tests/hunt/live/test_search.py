"""A counterexample that is inherent to the servers is not shrunk, which saves budget."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import name_of, table
from fencepost.hunt.live import search
from fencepost.hunt.sim.schedule import Schedule


@pytest.fixture
def least(tmp_path, monkeypatch):
    """Shrink a run with one injection of each of these faults; `breaks` says which faults of a
    schedule break the lock. The reference breaks with `clock`. Return the names that were shrunk,
    or else played again."""
    (tmp_path / "lock.sh").write_text("")

    def make(*names, breaks, faults="clock,pause,delay", inherent=False):
        hunt = described(
            "", {}, {"seed": 1}, servers="redis:1", program="sh lock.sh", ship=tmp_path,
            faults=faults,
        )  # fmt: skip
        actions = table(hunt.setting)
        number = {name_of(one): n for n, one in enumerate(actions, 1)}
        met = Schedule((), tuple((step, number[one]) for step, one in enumerate(names, 1)))
        shrunk, played = [], []

        def named(schedule):
            return {name_of(actions[n - 1]) for _, n in schedule.injections}

        def shrink(ahead, schedule, actions):
            shrunk.append(named(schedule))
            return schedule

        def again(searched, met, schedule, runs):
            played.append(named(schedule))
            return "find"

        monkeypatch.setattr(search._Ahead, "shows", lambda ahead, one: breaks(named(one)))
        monkeypatch.setattr(search._Ahead, "shrink", shrink)
        monkeypatch.setattr(search.Search, "_again", again)
        made = search.Search(hunt.setting, SimpleNamespace(lanes=4), 1, lambda tried: None)
        made._reference.breaks = lambda checker, used: used == {"clock"}
        run = SimpleNamespace(exact_schedule=met)
        assert made._least(run, ("lease_exclusion",), inherent) == "find"
        return shrunk, played

    return make


def test_what_the_servers_alone_break_is_not_shrunk(least):
    assert least("clock", "pause:client", breaks=lambda used: "clock" in used) == ([], [{"clock"}])


def test_what_breaks_without_the_servers_faults_is_shrunk_without_them(least):
    shrunk, _ = least("clock", "pause:client", breaks=lambda used: "pause:client" in used)
    assert shrunk == [{"pause:client"}]


def test_what_needs_both_is_shrunk_as_a_whole(least):
    shrunk, _ = least("clock", "pause:client", breaks=lambda used: len(used) == 2)
    assert shrunk == [{"clock", "pause:client"}]


def test_what_ends_the_hunt_is_shrunk(least):
    always = {"breaks": lambda used: True}
    assert least("clock", **always, inherent=True)[0] == [{"clock"}]
    assert least("clock", **always, faults="clock")[0] == [{"clock"}]
