"""Each checker names the properties that a run could not have shown to be violated."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from fencepost.checker.facts.untested import untested
from fencepost.checker.history.history import History, Op
from fencepost.checker.linearizable import linearizable
from fencepost.checker.resource import resource
from fencepost.checker.store import store
from tests.histories import Story

ALONE = ["two clients that want one lock"]


def on_one_node(story):
    ops = story.history().ops
    return History(
        [Op(o.index, o.time, o.process, o.type, o.f, o.value, o.error, "one") for o in ops]
    )


def two_processes(second, *, gone):
    """A process with a lock from 0 to 500, then another one, from `second` on."""
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=gone)
    story.denied(2, second, second + 10)
    return on_one_node(story)


@pytest.mark.parametrize("checker", [lease_exclusion, mutual_exclusion, linearizable])
@pytest.mark.parametrize(
    ("second", "gone", "named"), [(400, 500, []), (500, 500, ALONE), (600, 500, ALONE)]
)
def test_processes_of_one_node_that_worked_at_the_same_time_are_two_clients(
    checker, second, gone, named
):
    """A process that begins when another is gone is its successor."""
    assert checker(two_processes(second, gone=gone), {}).details["untested"] == named


def test_two_clients_with_a_lock_each_do_not_want_one_lock():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=100, until=1000, lock="another")
    assert lease_exclusion(story.history(), {}).details["untested"] == ALONE
    story.denied(2, 200, 210)
    assert lease_exclusion(story.history(), {}).details["untested"] == []


def test_contention_is_found_as_by_a_look_at_every_pair_of_processes():
    random = Random(3)
    seen = set()
    for _ in range(500):
        story = Story()
        for process in range(3):
            at = random.randrange(20)
            for _ in range(random.randint(1, 2)):
                story.denied(process, at, at := at + random.randint(0, 6))
        ops = story.history().ops
        nodes = {process: random.choice(("a", "a", "b")) for process in range(3)}
        ops = [
            Op(o.index, o.time, o.process, o.type, o.f, o.value, o.error, nodes[o.process])
            for o in ops
        ]
        spans = {p: [op.time for op in ops if op.process == p] for p in {op.process for op in ops}}
        contended = any(
            nodes[one] != nodes[other]
            or (spans[one][0] < spans[other][-1] and spans[other][0] < spans[one][-1])
            for one, other in combinations(spans, 2)
        )
        assert untested(History(ops), sees_lease=True) == ([] if contended else ALONE)
        seen.add(contended)
    assert seen == {True, False}


def test_a_lock_without_a_visible_lease_is_named():
    story = Story()
    story.grant(1, "h1", at=0, until=None)
    named = [*ALONE, "a lease that the client can see"]
    assert lease_exclusion(story.history(), {}).details["untested"] == named
    assert mutual_exclusion(story.history(), {}).details["untested"] == ALONE


def test_one_accepted_write_without_a_later_answer_tests_neither_store_nor_resource():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.read(1, 10, None, 0)
    story.write(1, 20, "a", 0, 1, hold="h1")
    found = store(story.history(), {})
    assert found.valid is True
    assert found.summary.endswith(
        "Not tested: account after a write (nothing was answered that began after an accepted "
        "write)."
    )
    assert resource(story.history(), {}).details["untested"] == [
        "lost updates (no resource accepted two writes)",
        "missing writes (nothing was answered that began after an accepted write)",
        "stale writes (no resource accepted writes under two holds)",
    ]
    story.read(1, 30, "a", 1)
    assert store(story.history(), {}).details["untested"] == []
    assert resource(story.history(), {}).details["untested"] == [
        "lost updates (no resource accepted two writes)",
        "stale writes (no resource accepted writes under two holds)",
    ]
    story.write(1, 40, "b", 1, 2, hold="h1")
    assert resource(story.history(), {}).details["untested"] == [
        "stale writes (no resource accepted writes under two holds)"
    ]
    story.grant(2, "h2", at=1100, until=2100)
    story.write(2, 1200, "c", 2, 3, hold="h2")
    assert resource(story.history(), {}).details["untested"] == []


def test_a_read_that_began_before_the_write_was_accepted_tests_nothing():
    story = Story()
    story.write(1, 20, "a", 0, 1, done=40)
    story.read(2, 30, "a", 1, done=50)
    assert len(store(story.history(), {}).details["untested"]) == 1
    assert resource(story.history(), {}).details["untested"][1].startswith("missing writes")
