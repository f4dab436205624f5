"""Facts that the ops of a history lack, as those of an old or a foreign one may."""

from __future__ import annotations

from fencepost.checker.facts.faults import faults
from fencepost.harness.judge.fault_facts import with_facts
from tests.histories import Story


def start(story, family, **says):
    value = {"fault": family, "phase": "start", "targets": ["s1"], "arguments": {}, **says}
    story.op(1, "nemesis", "invoke", family, value)
    story.op(2, "nemesis", "ok", family, value | {"receipt": {"proved": True}})
    story.op(3, "nemesis", "invoke", family, {"fault": family, "phase": "end"})


def test_an_op_that_lacks_the_facts_is_given_those_of_its_family():
    story = Story()
    start(story, "kill")
    before = story.history()
    (fault,) = faults(with_facts(before))
    assert (fault.impairs, fault.links, fault.forgets) == (frozenset({"s1"}), (), True)
    assert faults(before)[0].forgets is None


def test_what_an_op_says_itself_stays():
    story = Story()
    start(story, "kill", forgets=False)
    (fault,) = faults(with_facts(story.history()))
    assert (fault.impairs, fault.forgets) == (frozenset({"s1"}), False)


def test_of_a_family_that_there_is_not_nothing_is_known():
    story = Story()
    start(story, "gremlin")
    (fault,) = faults(with_facts(story.history()))
    assert (fault.impairs, fault.links, fault.forgets) == (None, None, None)


def test_a_history_that_has_them_is_left_as_it_is():
    story = Story()
    story.fault("kill", 1, 3, ["s1"])
    history = story.history()
    assert with_facts(history) is history


def test_an_old_cut_that_was_to_reject_has_dropped_messages():
    links = {"links": [["client-1", "s1"]], "how": "reject"}
    story = Story()
    start(story, "partition", arguments=links)
    assert faults(with_facts(story.history()))[0].rejects is False
    story = Story()
    start(story, "partition", arguments=links, rejects=True)
    assert faults(with_facts(story.history()))[0].rejects is True
