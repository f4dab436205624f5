"""The cost of a verdict, and the size of its evidence, grow with the history and not faster."""

from __future__ import annotations

import json
from random import Random

import pytest

from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.facts import fairness as fairness_
from fencepost.checker.facts import faults as faults_module
from fencepost.checker.facts.faults import Fault, faults
from fencepost.checker.facts.hindered import prolonged
from fencepost.checker.liveness import liveness
from tests.histories import Story

SERVICE = ("lease_exclusion", "mutual_exclusion", "fencing", "ownership", "liveness")


def stormy(count):
    """Return a history in which every hold overlaps the next, under faults that never end."""
    story = Story()
    for number in range(count):
        at = 10 * number
        story.fault("pause", at, None, ["redis-1"], name=f"p{number}")
        story.grant(number, f"h{number}", at=at + 1, until=at + 100_000, token=count - number)
    return story.history()


@pytest.mark.parametrize("name", SERVICE)
def test_evidence_names_a_few_of_the_faults_that_never_end(name):
    checker, sizes = CHECKERS[name], []
    for count in (40, 80):
        history = stormy(count)
        test = {"servers": ["redis-1"], "lock": {"name": "redis", "token": "majority"}}
        sizes.append(len(json.dumps(checker.check(Run(history, test)).to_json())))
    assert sizes[1] < 3 * sizes[0]


def test_a_sentence_names_the_latest_faults_and_counts_the_others():
    on = faults_module.over_time(faults(stormy(20)))
    said = faults_module.during(on, 0, 10**12)
    assert said.count("pause of redis-1") == 5
    assert said.endswith("; and 15 that began earlier.")


def test_clients_that_ask_at_the_same_time_are_not_compared_one_with_another(monkeypatch):
    """Which of them came first is unknown."""
    compared = []
    monkeypatch.setattr(fairness_._Queue, "_settled", lambda *pair: compared.append(pair) or False)
    story = Story()
    for process in range(50):
        story.op(process, process, "invoke", "acquire", {"lock": "orders", "ttl": 10**9})
    for process in range(50):
        value = {"lock": "orders", "ttl": 10**9, "hold": f"h{process}", "token": process}
        story.op(100 + process, process, "ok", "acquire", value)
    liveness(story.history(), {"lock": {"promises": {"fifo": True}}})
    assert compared == []


def test_the_longest_lease_that_a_fault_met_equals_that_of_a_full_scan():
    for seed in range(200):
        random = Random(seed)
        leases = []
        for _ in range(random.randrange(12)):
            begin = random.randrange(20)
            leases.append((begin, begin + random.randrange(8), random.randrange(1, 9)))
        on = []
        for name in range(random.randrange(5)):
            start = random.randrange(20)
            end = None if random.random() < 0.3 else start + random.randrange(8)
            on.append(Fault(f"f{name}", "pause", [], {}, start, end, True, True))
        expected = {
            fault.name: max(
                (
                    ttl
                    for begin, over, ttl in leases
                    if over >= fault.start and (fault.end is None or begin <= fault.end)
                ),
                default=0,
            )
            for fault in on
        }
        assert prolonged(on, leases) == expected
