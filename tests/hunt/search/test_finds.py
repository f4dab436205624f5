"""Known defects of known locks are found without hints, and shrunk to their minimum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.harness.campaigns.defect_plays import of_hunt
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.hunt import hunt
from fencepost.hunt.search.judge import violations
from fencepost.hunt.search.search import search
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.story.story import numbered
from fencepost.workloads.contract.catalogue import LOCK, TWIN, catalogue

pytestmark = pytest.mark.slow

SERVICE = "lease_exclusion"


def find(one, seed=1, budget_s=600):
    _, found = hunt(one, seed, budget_s, processes=1)
    assert found is not None
    return found


# The hunt, and words that its story must have.
KNOWN = {
    "a clock jumps (C1)": (("redlock", "clock,partition"), {}, ["clock of redis-", "lease_excl"]),
    "a server forgets (C2)": (("redlock", "kill,partition"), {}, ["its data gone"]),
    "the last second is lost (C3)": (
        ("redlock", "power,partition"),
        {"persistence": "everysec"},
        ["loses power", "lease_excl"],
    ),
    "a pause before the look at the clock is left out (C7)": (
        ("redlock", "pause", SERVICE, {"clock_check": "false"}),
        {},
        ["is paused"],
    ),
    "a write is held back (C9)": (
        ("redlock", "delay", None, {}, "none"),
        {},
        ["held back", "resource is violated"],
    ),
    "a random value is no token (C10)": (
        ("redlock", "", "fencing", {"token": "value"}),
        {},
        ["fencing is violated", "with token"],
    ),
    "a release that checks no owner (C14)": (
        ("broken-no-owner-check", "pause", "ownership"),
        {},
        ["ownership is violated"],
    ),
    "no TTL (C15)": (("broken-no-ttl", "kill,partition", "liveness"), {}, ["in vain"]),
    "an extension without a quorum unlocks (L3)": (
        ("redlock-npm", "pause,partition,packet"),
        {},
        ["has deleted its key there, while it extended its lease", "lease_excl"],
    ),
    "a failover (C16)": (("redis-replicated", "failover,partition"), {}, ["is promoted"]),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", KNOWN)
def test_a_known_defect_is_found_and_explained(setting, name):
    asked, settings, words = KNOWN[name]
    lock, faults, until, options, guard = (*asked, *[None] * (5 - len(asked)))
    one = setting(lock, faults, until, options, guard, **settings)
    found = find(one)
    story = "\n".join(numbered(found.story))
    assert all(word in story for word in words), story
    assert len(found.schedule.injections) <= 4


@pytest.mark.oracle
def test_no_injection_of_a_shrunk_counterexample_can_be_removed(setting):
    one = setting("redlock", "clock,partition,delay,kill")
    found = find(one)
    first, actions = next(iter(found.broken)), table(one)
    strikes = found.schedule.injections
    for place in range(len(strikes)):
        less = replace(found.schedule, injections=strikes[:place] + strikes[place + 1 :])
        assert not violations(Run(one, less, actions).execute(), [first], surely=True)


def test_kleppmanns_schedule_is_told_in_eight_steps(setting):
    found = find(setting("redlock", "clock,partition"))
    assert len(found.story) <= 8


def test_a_paused_client_that_believes_is_no_counterexample(setting):
    tried = search(setting("redis", "pause"), 1, 60, 1, most=100)
    assert tried.found is None
    assert tried.schedules == 100


def test_a_paused_client_is_a_counterexample_if_it_is_the_goal(setting):
    found = find(setting("redis", "pause", "mutual_exclusion"))
    assert "mutual_exclusion is violated" in numbered(found.story)[-1]


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("lock", "faults", "options", "settings"),
    [
        ("redlock", "pause,partition,delay,packet", {}, {}),
        (
            "redlock",
            "pause,partition,delay,packet,kill,power",
            {},
            {"persistence": "always", "restart": "after-ttl"},
        ),
        ("redis", "pause,partition,delay,packet", {"token": "incr"}, {}),
        ("redis-replicated", "pause,delay,packet", {}, {}),
    ],
)
def test_a_sound_setting_has_no_counterexample(setting, lock, faults, options, settings):
    tried = search(setting(lock, faults, None, options, **settings), 1, 60, 1, most=300)
    assert tried.found is None
    assert tried.schedules == 300
    assert len(tried.states) > 50
    assert set(tried.injected) == set(setting(lock, faults, None, options, **settings).faults)


def test_the_counterexample_is_the_same_with_any_number_of_processes(setting):
    one = setting("redlock", "clock,partition,kill")
    alone, together = (search(one, 3, 60, processes) for processes in (1, 2))
    assert alone.found == together.found
    assert alone.found is not None


def test_clients_acquire_the_lock_while_a_minority_is_down_for_good(setting):
    one = setting("redlock", "kill", restart="never")
    actions = table(one)
    number = next(n for n, action in enumerate(actions, 1) if action.way == "one")
    run = Run(one, Schedule((), ((5, number),)), actions).execute()
    healed = next(
        i for i, row in enumerate(run.rows) if row[3] == "kill" and row[4]["phase"] == "end"
    )
    before = [row for row in run.rows[:healed] if row[2:4] == ("ok", "acquire")]
    assert len(before) == 3
    assert run.came_back


@pytest.mark.parametrize("name", [LOCK, TWIN])
def test_a_lock_that_needs_every_server_is_blamed_for_one_that_is_cut_off_to_the_end(name):
    one = of_hunt(catalogue()["quorum-every-server-needed"], name, 1).setting
    actions = table(one)
    cut = next(n for n, action in enumerate(actions, 1) if action.kind == "partition")
    run = Run(one, Schedule((), ((1, cut),)), actions).execute()
    assert run.denied == (name == LOCK)
    assert list(violations(run, ["liveness"])) == (["liveness"] if name == LOCK else [])


def test_a_client_that_a_majority_of_the_servers_lacks_asks_only_when_the_faults_have_ended():
    one = of_hunt(catalogue()["quorum-every-server-needed"], LOCK, 1).setting
    actions = table(one)
    cuts = [n for n, action in enumerate(actions, 1) if action.kind == "partition"]
    run = Run(one, Schedule((), ((1, cuts[0]), (2, cuts[1]))), actions).execute()
    assert not run.denied
