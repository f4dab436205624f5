"""The exhaustive search tries every schedule up to a depth, and skips only known states."""

from __future__ import annotations

import pytest

from fencepost.checker.history.history import NEMESIS
from fencepost.hunt.faults.registry import table
from fencepost.hunt.run import Run
from fencepost.hunt.search.exhaustive import Every, Probe, batches
from fencepost.hunt.search.search import search, search_all
from fencepost.hunt.sim.schedule import Schedule

pytestmark = pytest.mark.slow


def seen_by_clients(run):
    """Return all requests and replies of the clients, with times."""
    return tuple(
        (time, process, type, f, str(value), str(error))
        for time, process, type, f, value, error, _, _ in run.rows
        if process != NEMESIS
    )


def test_each_message_of_the_undisturbed_run_is_lost_once(setting):
    """Count by hand: each request and its reply is a message, twelve in all.

    client-1 asks and is granted, client-2 asks three times, both release. One run loses none.
    """
    tried = search_all(setting("redis", "packet"), 1, 60, processes=1)
    assert (tried.schedules, tried.depth, tried.found) == (13, 1, None)


def test_tried_and_known_schedules_are_all_schedules_of_a_depth(setting):
    one = setting("redis", "kill,packet", "ownership", persistence="always")
    actions = table(one)
    steps = Run(one, Schedule(), actions).execute().worked_step
    tried = search_all(one, 1, 60, processes=1)
    assert len(actions) == 4
    assert tried.schedules + tried.known == 1 + 4 * steps


def losses(run):
    """Return the lost messages of a run, by time."""
    return tuple(
        (row[0], row[4]["arguments"]["words"])
        for row in run.rows
        if row[1] == NEMESIS and row[2] == "invoke" and row[4]["phase"] == "start"
    )


def test_with_two_injections_each_pair_of_messages_is_lost_exactly_one_time(setting):
    """Count by running every pair of steps and comparing the lost messages."""
    one = setting("redis", "packet")
    actions = table(one)
    pairs = set()
    steps = Run(one, Schedule(), actions).execute().worked_step
    for first in range(1, steps + 1):
        parent = Run(one, Schedule((), ((first, 1),)), actions).execute()
        for second in range(first + 1, parent.worked_step + 1):
            strikes = ((first, 1), (second, 1))
            lost = losses(Run(one, Schedule((), strikes), actions).execute())
            pairs |= {lost} if len(lost) == 2 else set()
    assert search_all(one, 2, 60, processes=1).schedules == 13 + len(pairs) > 100


@pytest.mark.parametrize(
    ("lock", "faults", "options"),
    [
        ("redis", "pause", {}),
        ("redis", "clock", {}),
        ("redis", "kill", {}),
        ("redis", "partition", {"watchdog": "true"}),
        ("redis", "delay,packet/duplicate", {}),
        ("redis-replicated", "failover,partition", {}),
        ("etcd", "packet", {}),
        ("etcd-lock-api", "pause", {}),
    ],
)
def test_skipped_schedules_show_clients_nothing_new(setting, lock, faults, options):
    """Inject every fault at every step, with and without the known states."""
    one = setting(lock, faults, None, options)
    actions = table(one)
    steps = Run(one, Schedule(), actions).execute().worked_step
    left_out = 0
    for number in range(1, min(len(actions), 12) + 1):
        known, kept, all_of_them = set(), set(), set()
        all_of_them.add(seen_by_clients(Run(one, Schedule(), actions).execute()))
        kept |= all_of_them
        for step in range(1, steps + 1):
            schedule = Schedule((), ((step, number),))
            probe = Probe(one, schedule, actions, known).execute()
            run = Run(one, schedule, actions).execute()
            all_of_them.add(seen_by_clients(run))
            if probe.is_known:
                left_out += 1
            else:
                assert seen_by_clients(probe) == seen_by_clients(run)
                kept.add(seen_by_clients(run))
        assert kept == all_of_them, actions[number - 1]
    assert left_out > 0


def test_it_hits_the_one_step_that_as_many_random_schedules_miss(setting):
    """Of the fifty steps only the one between GET and DEL breaks the lock, by a long pause."""
    one = setting("broken-check-then-delete", "pause", "ownership")
    tried = search_all(one, 1, 60, processes=1)
    assert tried.found is not None
    (strike,) = tried.found[0].injections
    run = Run(one, tried.found[0], table(one)).execute()
    assert run.injected == [strike]
    missed = sum(
        search(one, seed, 60, processes=1, most=tried.schedules).found is None for seed in range(5)
    )
    assert missed >= 3


def test_it_is_the_same_with_any_number_of_processes(setting):
    one = setting("redis", "packet,kill", "ownership", persistence="always")
    alone, two = (search_all(one, 1, 60, processes=count) for count in (1, 2))
    assert (alone.schedules, alone.known, alone.found) == (two.schedules, two.known, two.found)


def test_a_search_that_times_out_reports_its_depth(setting):
    tried = search_all(setting("redis", "packet,delay"), 3, 2.0, processes=1)
    assert tried.depth in (1, 2)


def test_batches_cover_all_actions_once(setting):
    actions = table(setting("redlock", "clock,pause"))
    made = list(batches(Schedule(), actions))
    covered = [number for one in made for number in range(one.first, one.last + 1)]
    assert covered == list(range(1, len(actions) + 1))
    assert [one.bare for one in made] == [True] + [False] * (len(made) - 1)
    assert list(batches(Schedule(), [])) == [Every(Schedule(), 1, 0, bare=True)]
