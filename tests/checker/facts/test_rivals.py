"""Which of two writes happened first, where the resource's versions leave it open."""

from __future__ import annotations

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.lost_updates import lost
from fencepost.checker.facts.time_order import Axes, tied
from fencepost.checker.facts.tokens import trusted
from fencepost.checker.facts.writes import after_others, registers
from tests.histories import Story


def judged(story):
    clocks = Clocks({})
    history = story.history()
    (register,) = registers(history, clocks)
    return register, Axes(clocks, tied(history))


class Latest:
    """Compare the latest write before it with each."""

    def __init__(self):
        self.write = None

    def add(self, write):
        self.write = write

    def against(self, write):
        return self.write


def test_of_two_writes_built_on_one_version_the_one_whose_number_follows_it_won():
    story = Story()
    story.write(1, 10, "b", 0, done=40)
    story.write(2, 20, "a", 0, 1, done=30)
    register, axes = judged(story)
    assert [(found.write.value, found.why) for found in lost(register, axes)] == [
        ("b", "the write 'a' of process 2 built on it as well")
    ]


def test_one_number_given_to_two_writes_one_after_the_other_is_a_store_that_failed():
    """Its versions say nothing: only time shows that the second write came after the first."""
    story = Story()
    story.write(1, 10, "a", None, 5)
    story.write(2, 20, "b", None, 5)
    register, axes = judged(story)
    pairs = after_others(register.writes, axes, Latest)
    assert [(later.value, earlier.value) for later, earlier in pairs] == [("b", "a")]


def test_cached_facts_hold_for_the_clocks_and_the_test_that_they_were_computed_with():
    """The holds and the writes of a history are computed once for each."""
    story = Story()
    story.grant(1, "a", 10, 1000, token=5)
    story.grant(2, "b", 50, 2000, asked=40, token=4)
    story.release(1, "a", 60, type="fail", kind="no-quorum")
    history, vague = story.history(), Clocks({"clocks": {"client-2": {"bound_ns": 10**9}}})
    assert [hold.token for hold in trusted(history, {}, Clocks())] == [None, None]
    assert [hold.token for hold in trusted(history, {}, vague)] == [5, 4]
    ends = [hold.strict_end for hold in trusted(history, {}, vague)]
    goes_on = trusted(history, {"failed_release": "nothing"}, vague)
    assert [hold.strict_end for hold in goes_on] != ends

    story = Story()
    story.read(2, 50, "a", 1, done=60)
    story.write(1, 100, "a", 0, 1, done=110)
    history = story.history()
    assert registers(history) == registers(history, Clocks())
    assert [len(found.phantoms) for found in registers(history)] == [1]
    assert [len(found.phantoms) for found in registers(history, vague)] == [0]
