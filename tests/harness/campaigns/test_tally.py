"""Counts of a run: times without a grant, and each violating hold once."""

from __future__ import annotations

from fencepost.harness.campaigns.tally import calm, longest, violating
from tests.histories import Story


def test_the_longest_time_without_a_grant_begins_and_ends_with_the_span():
    assert longest([1.0, 2.0, 6.0], [(0.0, 7.0)]) == 4.0
    assert longest([], [(0.0, 7.0)]) == 7.0
    assert longest([1.0, 2.0], [(0.0, 7.0)]) == 5.0
    assert longest([9.0], [(0.0, 2.0), (3.0, 4.5)]) == 2.0
    assert longest([1.0], []) == 0.0


def test_it_is_calm_while_no_fault_is_on():
    assert calm([], 0.0, 9.0) == [(0.0, 9.0)]
    assert calm([(3.0, 4.0), (1.0, 2.0)], 0.0, 9.0) == [(0.0, 1.0), (2.0, 3.0), (4.0, 9.0)]
    assert calm([(1.0, 5.0), (2.0, 3.0)], 0.0, 9.0) == [(0.0, 1.0), (5.0, 9.0)]
    assert calm([(0.0, 9.0)], 0.0, 9.0) == []
    assert calm([(8.0, 12.0)], 0.0, 9.0) == [(0.0, 8.0)]
    assert calm([(10.0, 12.0)], 0.0, 9.0) == [(0.0, 9.0)]


def test_a_hold_that_violates_in_two_ways_counts_once():
    twice = [{"ops": [1, 5]}, {"ops": [3, 5]}, {"ops": [5, 7]}]
    history = Story().history()
    checkers = {"lease_exclusion": {"evidence": twice}}
    assert violating(history, checkers, "service") == 2
    assert violating(history, checkers, "clients") == 0


def test_damage_is_counted_by_the_hold_under_which_was_written():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=10, until=1010)
    for process, hold, at in ((1, "h1", 20), (1, "h1", 30), (2, "h2", 40)):
        story.write(process, at, f"{hold}-{at}", version=None, hold=hold)
    history = story.history()
    writes = [op for op in history.ops if op.f == "write" and op.type == "invoke"]
    pieces = [{"ops": [op.index, op.index + 1]} for op in writes]
    assert len(pieces) == 3
    assert violating(history, {"resource": {"evidence": pieces}}, "data") == 2
    # A read proves a phantom, and has no hold.
    phantom = {"ops": [history.ops[0].index, 1]}
    assert violating(history, {"resource": {"evidence": [*pieces, phantom, phantom]}}, "data") == 3
