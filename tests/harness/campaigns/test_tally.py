"""Counts of a run: times without a grant, and each violating hold once."""

from __future__ import annotations

from random import Random

from fencepost.checker.facts.reigns import figures
from fencepost.checker.history.history import History
from fencepost.harness.campaigns.tally import calm, leaders, longest, violating
from tests.histories import Story
from tests.oracles.leadership import draw


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


def test_the_figures_of_an_election_have_every_time_of_a_take_over():
    test = {"ttl_ms": 100, "lock": {"name": "x", "elector": True}}
    seen = 0
    for seed in range(40):
        history = History(draw(Random(seed))[0])
        found, known = leaders(history, test), figures(history, test)
        for name in ("overlaps", "overlap_longest_s", "overlap_total_s", "without_leader_s"):
            assert found[name] == known[name]
        counts = {cause: (len(times), max(times)) for cause, times in found["took_s"].items()}
        assert counts == {
            cause: (row["count"], row["longest"]) for cause, row in known["take_over_s"].items()
        }
        seen += sum(count for count, _ in counts.values())
    assert seen > 40
