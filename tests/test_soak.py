"""The soak detects leaks of any size, and takes no noise for a leak."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import socket
import tempfile
import threading

import pytest

from fencepost.nemesis.families import FAMILIES
from tests.soak import flat, measures
from tests.soak.judgement import Bound, growth, judge, table
from tests.soak.run import LOCKS, ROUNDS, families, rounds

BOUNDS = {"memory": Bound(0.25, "no more in a night")}
ROUND = 3
RUNS = 30


def wrong(series, round_=ROUND, bounds=BOUNDS):
    return {row.name: row.wrong for row in judge(series, round_, bounds) if row.wrong}


def runs(**of_run):
    return [{name: of(number) for name, of in of_run.items()} for number in range(RUNS)]


def test_a_constant_count_is_no_leak():
    assert wrong(runs(handles=lambda n: 7, memory=lambda n: 80.0)) == {}


def test_a_handle_that_each_run_leaves_is_too_many():
    assert wrong(runs(handles=lambda n: 7 + n)) == {"handles": "+27 from first to last"}


def test_one_handle_that_a_single_run_leaves_is_too_many():
    assert wrong(runs(handles=lambda n: 7 + (n > 20))) == {"handles": "+1 from first to last"}


def test_a_resource_missing_at_the_end_is_a_difference_too():
    """For example, a run has removed another user's network."""
    assert wrong(runs(networks=lambda n: 4 - (n > 20))) == {"networks": "-1 from first to last"}


def test_growth_in_the_first_round_is_no_leak():
    assert wrong(runs(handles=lambda n: min(7 + n, 9), memory=lambda n: min(60 + 9 * n, 78))) == {}


def test_growth_in_the_first_half_is_no_leak():
    assert wrong(runs(memory=lambda n: min(80 + 2 * n, 104))) == {}


def test_runs_of_a_round_may_differ_and_are_compared_with_the_same_of_another_round():
    assert wrong(runs(processes=lambda n: 40 + n % ROUND)) == {}


def test_a_round_that_was_not_ended_is_not_compared():
    series = [*runs(processes=lambda n: 40 + n % ROUND), {"processes": 40}]
    assert wrong(series) == {}


def test_memory_kept_by_each_run_is_a_leak_whatever_the_noise():
    noise = random.Random(1)
    found = wrong(runs(memory=lambda n: 80 + 0.5 * n + noise.uniform(-1.5, 1.5)))
    assert found == {"memory": "more than 0.25 a run: no more in a night"}


def test_noise_is_no_growth():
    noise = random.Random(1)
    assert wrong(runs(memory=lambda n: 80 + noise.uniform(-1.5, 1.5))) == {}


def test_one_run_with_a_long_history_is_no_growth():
    assert wrong(runs(memory=lambda n: 80 + 100 * (n == RUNS - 1))) == {}


def test_a_soak_of_one_round_is_none():
    with pytest.raises(ValueError, match="4 samples are less than two rounds of 3"):
        judge(runs(handles=lambda n: 7)[:4], ROUND, BOUNDS)


def test_the_table_names_each_difference():
    rows = judge(runs(handles=lambda n: 7 + n, memory=lambda n: 80.0), ROUND, BOUNDS)
    head, handles, memory = table(rows)
    assert head.split() == ["first", "last", "worst", "a", "run"]
    assert handles.split()[:4] == ["handles", "9", "36", "36"]
    assert handles.endswith("NOT THE SAME: +27 from first to last")
    assert memory.split() == ["memory", "80", "80", "80", "+0"]


def test_growth_is_by_the_places_that_are_given():
    assert growth([0.0, 2.0, 4.0], [0.0, 1.0, 2.0]) == 2.0
    assert growth([1.0]) == 0.0


def keep_a_handle(kept):
    kept.append(socket.socket())


def keep_a_thread(kept):
    over = threading.Event()
    kept.append(over)
    threading.Thread(target=over.wait, daemon=True).start()


def keep_memory(kept):
    kept.append(b"x" * (1 << 20))


def keep_a_file(kept):
    os.close(tempfile.mkstemp()[0])


def keep_nothing(kept):
    bytearray(1 << 20)


def soaked(leave):
    """Return the leaks that a soak finds in runs that do this, in this process."""
    kept = []
    looks = itertools.count()
    tests = ["a", "b", "c"]
    try:
        series = rounds(tests, lambda test: leave(kept), measures.process, lambda: next(looks) > 20)
        return wrong(list(series), bounds=measures.BOUNDS)
    finally:
        for one in kept:
            for end in ("close", "set"):
                getattr(one, end, lambda: None)()


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("leave", "found"),
    [
        (keep_nothing, set()),
        (keep_a_handle, {"file handles"}),
        (keep_a_thread, {"threads", "threads of Python"}),
        (keep_memory, {measures.MEMORY}),
        (keep_a_file, {"temporary files"}),
    ],
)
def test_a_leak_that_is_made_on_purpose_is_found(leave, found, monkeypatch, tmp_path):
    monkeypatch.setattr(measures, "_LOOK_S", 0.0)
    monkeypatch.setattr(measures, "_LOOKS", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # In a process without the threads of earlier tests, which may begin others meanwhile.
    with multiprocessing.get_context("fork").Pool(1) as alone:
        assert set(alone.apply(soaked, (leave,))) == found


def test_a_soak_does_two_rounds_even_if_its_time_budget_has_ended():
    done = []
    assert len(list(rounds("abc", done.append, dict, lambda: True))) == ROUNDS * 3
    assert done == [*"abcabc"]


def test_the_locks_of_a_soak_take_every_family_of_faults():
    assert {family for lock in LOCKS for family in families(lock)} == set(FAMILIES)


def test_a_long_run_is_flat_if_the_processes_that_lived_for_long_are():
    young = {7: [(float(at), 30.0 + at) for at in range(20)]}
    assert flat.slope(young) == 0.0
    old = {8: [(float(at), 30.0 + (at < 20) * at) for at in range(300)]}
    assert flat.slope(old) == 0.0
    growing = {9: [(float(at), 30.0 + at / 60) for at in range(300)]}
    assert flat.slope(growing) == pytest.approx(1.0)
