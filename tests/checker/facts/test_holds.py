"""When a client believed in a hold, and what ends a hold where test.json does not say."""

from __future__ import annotations

import pytest

from fencepost.checker.facts.ends import ends_with
from fencepost.checker.facts.holds import FOREVER, holds, seconds
from tests.histories import MS, Story


@pytest.mark.parametrize(
    "test", [None, {}, {"lock": None}, {"lock": "redlock"}, {"lock": {}}, {"lock": {"name": "x"}}]
)
def test_a_lock_without_a_declared_end_ends_with_its_lease(test):
    assert ends_with(test) == "lease"


@pytest.mark.parametrize("test", [None, {}, {"failed_release": "ended"}])
def test_a_release_that_failed_ended_the_hold_unless_the_test_says_otherwise(test):
    story = Story()
    story.grant(0, "a", 1, 1001)
    story.release(0, "a", 5, type="fail", kind="no-quorum")
    assert [hold.strict_end for hold in holds(story.history(), test)] == [5 * MS]
    [goes_on] = holds(story.history(), {"failed_release": "nothing"})
    assert goes_on.ended_by == "never"


@pytest.mark.parametrize(("until", "believed"), [(4, []), (5, []), (6, [(5, 6)])])
def test_a_lease_that_expired_before_its_grant_arrived_was_never_believed(until, believed):
    story = Story()
    story.grant(0, "a", 5, until, asked=1)
    [hold] = holds(story.history())
    assert [(start / MS, end / MS) for start, end in hold.believed] == believed


@pytest.mark.parametrize(
    ("time", "said"),
    [(12_345_600_000, "12.346 s"), (10**15, "1000000.000 s"), (FOREVER, "the end of the run")],
)
def test_times_are_shown_in_seconds_and_a_missing_one_as_the_end_of_the_run(time, said):
    assert seconds(time) == said


def test_the_same_history_has_different_holds_for_another_test():
    """A history caches results for the test description that they were computed with."""
    story = Story()
    story.grant(1, "a", 0, 1000)
    story.op(200, 1, "info", "lost", {"lock": "orders", "hold": "a"})
    history = story.history()
    ends = {}
    for way in ("lease", "connection"):
        [hold] = holds(history, {"lock": {"ends_with": way}})
        ends[way] = min(hold.may_end, 1000 * MS)
    assert ends == {"lease": 1000 * MS, "connection": 200 * MS}


def test_each_process_has_holds_that_may_end_with_another_of_its_own():
    story = Story()
    for process, at in ((0, 0), (1, 2000)):
        story.grant(process, f"{process}-outer", at, at + 1000)
        story.grant(process, f"{process}-inner", at + 100, at + 1100)
        story.release(process, f"{process}-inner", at + 200)
    ends = {hold.name: hold.other_end for hold in holds(story.history())}
    assert (ends["0-outer"], ends["1-outer"]) == (200 * MS, 2200 * MS)


def test_a_renewal_is_certain_even_if_the_extend_before_it_was_not():
    story = Story()
    story.grant(0, "a", 0, 1000)
    story.op(500, 0, "info", "renewed", {"lock": "orders", "hold": "a", "deadline": 1500 * MS})
    story.op(600, 0, "invoke", "extend", {"lock": "orders", "hold": "a", "ttl": 200 * MS})
    [hold] = holds(story.history())
    assert (hold.deadline, hold.furthest) == (800 * MS, 1500 * MS)
