"""A fault without a receipt leaves a run unknown, and single verdicts combine into one."""

from __future__ import annotations

from itertools import product

import pytest

from fencepost.checker import receipts
from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS, check, valid
from fencepost.checker.facts import faults
from fencepost.checker.verdict import Verdict, worst
from tests.histories import MS, Story


@pytest.fixture
def story():
    """Record a run without violations: one hold, one write, a release."""
    story = Story()
    story.grant(1, "h1", at=10, until=1000, token=1)
    story.read(1, 20, None, 0)
    story.write(1, 30, "v", 0, 1, hold="h1", token=1)
    story.release(1, "h1", at=40)
    story.grant(2, "h2", at=2500, until=3500, token=2)
    return story


def verdict(story, **test):
    return receipts.check(story.history(), test)


def overall(story, **test):
    return valid(check(Run(story.history(), test), set(CHECKERS) - {"server-log", "jobs"}))


def test_a_good_run_without_faults_is_valid(story):
    assert verdict(story).valid is True
    assert verdict(story).summary == "No faults were requested."
    assert overall(story) is True


def test_a_good_run_with_a_proved_and_healed_fault_is_valid(story):
    story.fault("pause", 50, 100, ["redis-1"])
    assert verdict(story, nemesis=["pause"]).valid is True
    assert overall(story, nemesis=["pause"]) is True


def test_a_fault_without_a_receipt_makes_a_good_run_unknown(story):
    story.fault("pause", 50, 100, ["redis-1"], proved=False)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.evidence == [
        {
            "what": (
                "pause of redis-1 (from 0.050 s): no receipt; nothing proves that it took effect. "
                "Reason: as told."
            ),
            "time_ns": 50 * MS,
        }
    ]
    assert found.summary == "1 of 1 faults lack a receipt (as told)."
    assert overall(story) == "unknown"


@pytest.mark.parametrize("third", ["a third", ""])
def test_faults_without_receipts_for_different_reasons_are_summed_up_without_one(story, third):
    for at, how in ((50, "the reason."), (60, "the reason"), (70, third)):
        value = {"fault": f"p-{at}", "phase": "start", "targets": ["redis-1"], "arguments": {}}
        story.op(at, "nemesis", "invoke", "pause", value)
        receipt = {"proved": False, "how": how}
        story.op(at + 1, "nemesis", "info", "pause", value | {"receipt": receipt})
    found = verdict(story)
    assert found.summary == "3 of 3 faults lack a receipt."
    assert [one["what"].partition("effect.")[2] for one in found.evidence] == [
        " Reason: the reason.",
        " Reason: the reason.",
        f" Reason: {third}." if third else "",
    ]


@pytest.mark.parametrize("end", [None, 100])
def test_a_fault_that_nothing_proves_healed_makes_a_good_run_unknown(story, end):
    story.fault("pause", 50, end, ["redis-1"], healed=False)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.evidence == [
        {
            "what": "pause of redis-1 (from 0.050 s): nothing proves that it was healed.",
            "time_ns": 50 * MS,
        }
    ]
    assert overall(story) == "unknown"


def test_a_receipt_counts_only_on_a_completion_that_says_ok(story):
    value = {"fault": "p", "phase": "start", "targets": ["redis-1"], "arguments": {}}
    story.op(50, "nemesis", "invoke", "pause", value)
    story.op(51, "nemesis", "info", "pause", value | {"receipt": {"proved": True}})
    assert "nothing proves that it took effect" in verdict(story).evidence[0]["what"]


def test_a_fault_that_was_ordered_and_never_answered_is_unknown(story):
    value = {"fault": "p", "phase": "start", "targets": ["redis-1"], "arguments": {}}
    story.op(50, "nemesis", "invoke", "pause", value)
    assert verdict(story).valid == "unknown"


def test_faults_that_were_requested_and_never_injected_leave_the_run_unknown(story):
    found = verdict(story, nemesis=["pause", "kill"])
    assert found.valid == "unknown"
    assert "(pause, kill)" in found.summary
    assert overall(story, nemesis=["pause", "kill"]) == "unknown"


def test_a_family_that_was_requested_and_never_injected_leaves_the_run_unknown(story):
    story.fault("pause", 50, 100, ["redis-1"])
    found = verdict(story, nemesis=["pause", "kill"])
    assert found.valid == "unknown"
    assert "kill" in found.summary


@pytest.mark.parametrize("entry", ["pause:redis-1@5s", "pause@5s", "pause/2s", "pause=redis-1"])
def test_a_family_may_be_asked_for_with_its_targets_and_times(story, entry):
    story.fault("pause", 50, 100, ["redis-1"])
    found = verdict(story, nemesis=[entry])
    assert found.valid is True
    assert found.summary == "The fault has its receipts, and was healed."


def test_a_violation_stays_false_though_a_fault_lacks_its_receipt(story):
    story.fault("pause", 50, 100, ["redis-1"], proved=False)
    story.grant(3, "h3", at=2600, until=3600, token=3)
    assert overall(story) is False


def test_a_fault_is_on_from_its_order_until_its_healing_was_answered(story):
    story.fault("pause", 50, 100, ["redis-1"], name="a", arguments={"words": "a stops"})
    story.fault("kill", 70, None, ["redis-2"], name="b")
    first, second = faults.faults(story.history())
    assert (first.name, first.start, first.end) == ("a", 50 * MS, 100 * MS)
    assert (second.name, second.end, second.healed) == ("b", None, False)
    both = faults.over_time([first, second])
    assert faults.during(both, 0, 49 * MS) == " No fault was on at that time."
    assert faults.during(both, 0, 50 * MS) == " On at that time: a stops (from 0.050 s)."
    assert "a stops" in faults.during(both, 100 * MS, 200 * MS)
    assert "a stops" not in faults.during(both, 101 * MS, 200 * MS)
    assert "kill of redis-2" in faults.during(both, 10**15, 10**15)


def test_a_fault_whose_healing_was_never_answered_ends_when_that_was_ordered():
    story = Story()
    story.fault("pause", 2_000_000_000, None, ["redis-1"], name="p")
    story.op(2_000_000_100, "nemesis", "invoke", "pause", {"fault": "p", "phase": "end"})
    (fault,) = faults.faults(story.history())
    assert (fault.end, fault.healed) == (2_000_000_100 * MS, False)
    assert fault.describe() == "pause of redis-1 (from 2000000.000 s)"


def test_a_fault_that_was_healed_twice_ends_with_the_last_answer():
    story = Story()
    story.fault("pause", 50, 100, ["redis-1"], name="p")
    for at, type in ((200, "invoke"), (300, "ok")):
        story.op(at, "nemesis", type, "pause", {"fault": "p", "phase": "end"})
    (fault,) = faults.faults(story.history())
    assert (fault.end, fault.healed) == (300 * MS, True)


def test_faults_without_a_name_are_distinguished_by_their_family():
    story = Story()
    for at, family in ((50, "failover"), (60, "membership")):
        story.op(at, "nemesis", "invoke", family, {"phase": "start"})
    found = faults.faults(story.history())
    assert [(fault.name, fault.start) for fault in found] == [
        ("failover", 50 * MS),
        ("membership", 60 * MS),
    ]


def test_a_fault_may_name_no_targets():
    story = Story()
    story.op(50, "nemesis", "invoke", "failover", {"fault": "f", "phase": "start"})
    (fault,) = faults.faults(story.history())
    assert (fault.targets, fault.arguments) == ([], {})


def test_false_beats_unknown_and_unknown_beats_true():
    for verdicts in product((True, False, "unknown"), repeat=3):
        told = False if False in verdicts else "unknown" if "unknown" in verdicts else True
        assert worst(verdicts) == told


def test_nothing_checked_is_unknown():
    assert worst([]) == "unknown"


def test_only_selected_checkers_run_and_faults_are_always_judged(story):
    found = check(Run(story.history(), {}), ["liveness", "resource"])
    assert list(found) == ["faults", "liveness", "resource"]


def test_a_verdict_has_all_its_fields_in_json():
    row = Verdict("unknown", "Why.", [{"what": "x"}], {"holds": 3}).to_json()
    assert row == {"valid": "unknown", "summary": "Why.", "evidence": [{"what": "x"}], "holds": 3}


def test_a_fault_is_stored_with_all_its_fields():
    story = Story()
    story.fault("kill", 100, 200, ["redis-1"], name="k", arguments={"data": "wiped"}, pid=7)
    (fault,) = faults.faults(story.history())
    assert fault.to_json() == {
        "fault": "k",
        "family": "kill",
        "targets": ["redis-1"],
        "arguments": {"data": "wiped"},
        "start_ns": 100 * MS,
        "end_ns": 200 * MS,
        "proved": True,
        "healed": True,
        "receipts": [{"proved": True, "how": "as told", "pid": 7}] * 2,
    }


@pytest.mark.parametrize("unsaid", ["impairs", "links", "forgets"])
def test_a_fault_with_missing_facts_may_end_any_connection(unsaid):
    story = Story()
    says = {"impairs": ["s2"], "links": [], "forgets": True}
    value = {"fault": "g", "phase": "start", "targets": ["s2"], **says}
    story.op(500, "nemesis", "invoke", "gremlin", value)
    partly = {name: said for name, said in value.items() if name != unsaid} | {"fault": "h"}
    story.op(600, "nemesis", "invoke", "gremlin", partly)
    told, half = faults.faults(story.history())
    assert not told.disconnects("client-1", {"s1"})
    assert half.disconnects("client-1", {"s1"})


def test_the_effects_of_a_fault_are_what_its_op_says():
    story = Story()
    links = {"links": [["client-1", "s1"]]}
    story.fault("partition", 100, 200, ["client-1"], arguments=links)
    story.fault("gremlin", 300, 400, ["s2"])
    partition, gremlin = faults.faults(story.history())
    assert partition.links == (("client-1", "s1"),)
    assert (partition.forgets, gremlin.impairs, gremlin.forgets) == (False, None, None)
    assert partition.disconnects("client-1", {"s1"}) and partition.disconnects("client-1", set())
    assert not partition.disconnects("client-1", {"s2"}) and not partition.disconnects(
        "client-2", {"s1"}
    )
    assert gremlin.disconnects("client-1", {"s1"})
    story.fault("kill", 450, 460, ["s1"])
    killed = faults.faults(story.history())[-1]
    assert killed.disconnects("client-1", {"s1"}) and killed.disconnects("client-1", set())
    assert not killed.disconnects("client-1", {"s2"}) and not killed.disconnects("s1", set())
    said = {"impairs": ["s9"], "links": [["a", "b"]], "forgets": True}
    value = {"fault": "g", "phase": "start", "targets": ["s2"], **said}
    story.op(500, "nemesis", "invoke", "gremlin", value)
    told = faults.faults(story.history())[-1]
    assert told.disconnects("client-1", {"s9"}) and not told.disconnects("client-1", {"s2"})
    assert (told.impairs, told.links, told.forgets) == (frozenset({"s9"}), (("a", "b"),), True)


def test_a_receipt_of_the_start_tells_which_process_was_stopped_at_a_point(story):
    value = {"fault": "pause-1", "targets": ["client-0"], "arguments": {}}
    begun = {"proved": True, "at": "at check", "process": 0}
    story.op(1, "nemesis", "invoke", "pause", value | {"phase": "start"})
    story.op(2, "nemesis", "ok", "pause", value | {"phase": "start", "receipt": begun})
    story.op(5, "nemesis", "invoke", "pause", value | {"phase": "end"})
    story.op(6, "nemesis", "ok", "pause", value | {"phase": "end", "receipt": {"proved": True}})
    assert _stopped_at(story, "check") == {0: [(2 * MS, 5 * MS)]}


def test_it_is_found_among_other_faults(story):
    story.fault("kill", 1, 2, ["client-1"], process=1, at="at check")
    story.fault("pause", 3, 5, ["client-1"], process=1, at="at check", proved=False)
    story.fault("pause", 6, 7, ["client-1"], process=1, at="at delete")
    story.fault("pause", 8, 9, ["client-1"], process=1, at="at check")
    story.fault("pause", 10, 12, ["client-1"], process=1, at="at check")
    found = _stopped_at(story, "check")
    assert found == {1: [(8 * MS, 9 * MS), (10 * MS, 12 * MS)]}


def _stopped_at(story, point):
    return faults.stopped_at(faults.faults(story.history()), point)
