"""Of a client that did nothing after a kill without proof, nothing shows whether it lived."""

from __future__ import annotations

import pytest

from tests.checker.exclusion_stories import only, verdicts
from tests.histories import MS

FOREVER = float("inf")


def test_such_a_kill_may_have_ended_its_hold_and_ends_nothing_for_certain(story):
    story.grant(0, "a", at=0, until=1000)
    story.fault("kill", 500, None, ["client-0"], proved=False)
    hold = only(story)
    assert (hold.strict_end, hold.gone_by, hold.given_back) == (500 * MS, FOREVER, FOREVER)
    assert hold.ended_by == "doubt"


@pytest.mark.parametrize(("at", "strict"), [(499, False), (500, True), (1200, True)])
def test_a_later_grant_meets_no_certain_strict_hold(story, at, strict):
    story.grant(0, "a", at=0, until=400)
    story.fault("kill", 500, None, ["client-0"], proved=False)
    story.grant(1, "b", at=at, until=2000)
    assert verdicts(story) == (True, strict)


def test_the_lease_of_such_a_client_runs_on(story):
    story.grant(0, "a", at=0, until=1000)
    story.fault("kill", 500, None, ["client-0"], proved=False)
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story) == (False, True)


@pytest.mark.parametrize(("ends_with", "lease"), [("close", False), ("connection", True)])
def test_its_connection_may_have_ended_with_it(story, ends_with, lease):
    story.grant(0, "a", at=0, until=1000)
    story.fault("kill", 500, None, ["client-0"], proved=False)
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story, lock={"ends_with": ends_with}) == (lease, True)


@pytest.mark.parametrize(("seen", "strict"), [(500, True), (501, False)])
def test_a_client_that_did_more_after_the_kill_was_tried_lived(story, seen, strict):
    story.grant(0, "a", at=0, until=400)
    story.fault("kill", 500, None, ["client-0"], proved=False)
    story.read(0, seen, None, 0)
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story) == (True, strict)


@pytest.mark.parametrize(("processes", "strict"), [([0], True), ([7], False)])
def test_a_kill_that_names_another_process_hit_that_one(story, processes, strict):
    story.grant(0, "a", at=0, until=400)
    story.fault("kill", 500, None, ["client-0"], proved=False, processes=processes)
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story) == (True, strict)


@pytest.mark.parametrize(
    ("family", "node"), [("kill", "client-1"), ("clock", "client-0"), ("pause", "client-0")]
)
def test_no_other_fault_may_have_killed_it(story, family, node):
    story.grant(0, "a", at=0, until=400)
    story.fault(family, 500, None, [node], proved=False)
    story.grant(2, "b", at=600, until=1600)
    assert verdicts(story) == (True, False)


def test_a_proved_kill_that_names_no_process_kills_none(story):
    story.grant(0, "a", at=0, until=400)
    story.fault("kill", 500, None, ["client-0"])
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story) == (True, False)


def test_a_kill_that_was_never_answered_may_have_hit_at_any_time(story):
    story.grant(0, "a", at=0, until=400)
    value = {"fault": "k", "phase": "start", "forgets": True, "impairs": ["client-0"]}
    story.op(500, "nemesis", "invoke", "kill", value)
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story) == (True, True)


def test_a_fault_before_the_kill_does_not_hide_it(story):
    story.fault("pause", 0, 10, ["client-1"])
    story.grant(0, "a", at=20, until=400)
    story.fault("kill", 500, None, ["client-0"], proved=False)
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story) == (True, True)


def test_the_proof_of_another_kill_proves_nothing_of_it(story):
    story.grant(0, "a", at=0, until=400)
    story.fault("kill", 500, None, ["client-0"], proved=False)
    story.fault("kill", 550, None, ["client-7"], processes=[7])
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story) == (True, True)


def test_one_without_a_name_is_known_by_its_family(story):
    story.grant(0, "a", at=0, until=400)
    for at, family, node, proved in ((500, "kill", "client-0", False), (550, "power", "s1", True)):
        value = {"phase": "start", "forgets": True, "impairs": [node]}
        story.op(at, "nemesis", "invoke", family, value)
        receipt = {"receipt": {"proved": proved}}
        story.op(at, "nemesis", "ok" if proved else "info", family, value | receipt)
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story) == (True, True)
