"""A hold is believed as long as its holder may count on a lease, and no longer."""

from __future__ import annotations

import pytest

from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from fencepost.checker.facts.holds import FOREVER
from tests.checker.exclusion_stories import only
from tests.histories import MS, Story


def test_a_hold_that_is_never_released_is_believed_until_its_deadline_and_strictly_for_ever():
    story = Story()
    story.grant(1, "h", at=50, until=1000)
    hold = only(story)
    assert hold.strict_end == FOREVER
    assert hold.believed == [(50 * MS, 1000 * MS)]
    assert hold.ended_by == "never"


def test_a_lock_without_a_visible_lease_is_believed_as_long_as_it_is_strictly_held():
    story = Story()
    story.grant(1, "h", at=50, until=None)
    assert only(story).believed == [(50 * MS, FOREVER)]
    story.release(1, "h", at=9000)
    assert only(story).believed == [(50 * MS, 9000 * MS)]


def test_a_grant_that_arrives_after_its_deadline_was_never_believed():
    story = Story()
    story.grant(1, "h", at=500, until=400)
    hold = only(story)
    assert hold.believed == []
    assert hold.believed_end == hold.start


def test_an_extension_moves_the_deadline():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.extend(1, "h", at=900, until=1900)
    hold = only(story)
    assert hold.believed == [(0, 1900 * MS)]
    assert hold.deadline == 1900 * MS


def test_an_extension_in_the_instant_of_the_deadline_continues_the_lease():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.extend(1, "h", at=1000, until=2000)
    assert only(story).leases == ((0, 2000 * MS),)


def test_only_extensions_that_were_granted_are_extensions_of_a_hold():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.extend(1, "h", at=100, until=1100)
    story.extend(1, "h", at=200, until=None, type="fail")
    story.extend(1, "h", at=300, until=None, type="info")
    assert only(story).extends == (3,)


def test_an_extension_that_failed_moves_nothing():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.extend(1, "h", at=900, until=None, type="fail")
    assert only(story).believed == [(0, 1000 * MS)]


def test_an_extension_after_the_lease_expired_is_a_second_lease():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.extend(1, "h1", at=1500, until=2500)
    assert only(story).believed == [(0, 1000 * MS), (1500 * MS, 2500 * MS)]
    story.grant(2, "h2", at=1100, until=1400)
    assert lease_exclusion(story.history(), {}).valid is True
    assert mutual_exclusion(story.history(), {}).valid is False


def test_an_extension_granted_while_another_holds_the_lock_breaks_lease_exclusion():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1100, until=2100)
    story.extend(1, "h1", at=1500, until=2500)
    verdict = lease_exclusion(story.history(), {})
    assert verdict.valid is False
    assert verdict.evidence[0]["holds"] == ["h2", "h1"]


def extends(story, type, done, until=None):
    asked = {"lock": "orders", "hold": "a", "ttl": 200 * MS}
    answer = {} if until is None else {"deadline": until * MS}
    error = None if type == "ok" else ["timeout", "-"]
    story.call(1, "extend", 100, done, asked, answer, type, error)


@pytest.mark.parametrize(("type", "valid"), [("ok", True), ("info", True), ("fail", False)])
def test_a_request_for_a_shorter_lease_shortens_the_belief_at_once(type, valid):
    story = Story()
    story.grant(1, "a", at=0, until=1000)
    extends(story, type, 540, 300 if type == "ok" else None)
    story.grant(2, "b", at=410, until=1400)
    assert lease_exclusion(story.history(), {}).valid is valid


def test_a_shorter_lease_is_believed_until_its_own_end():
    story = Story()
    story.grant(1, "a", at=0, until=1000)
    extends(story, "ok", 110, 300)
    assert only(story).believed == [(0, 300 * MS)]
    assert only(story).furthest == 300 * MS


def test_a_lease_that_an_extend_of_unknown_outcome_may_have_shortened_may_still_run():
    story = Story()
    story.grant(1, "a", at=0, until=1000)
    extends(story, "info", 110)
    assert (only(story).deadline, only(story).furthest) == (300 * MS, 1000 * MS)


def test_a_renewal_with_an_earlier_deadline_is_believed():
    story = Story()
    story.grant(1, "a", at=0, until=1000)
    value = {"lock": "orders", "hold": "a", "deadline": 500 * MS}
    story.op(200, 1, "info", "renewed", value)
    assert only(story).believed == [(0, 500 * MS)]


def test_an_extend_does_not_end_the_belief_of_a_holder_that_sees_no_lease():
    story = Story()
    story.grant(1, "a", at=0, until=None)
    extends(story, "ok", 110)
    assert only(story).believed == [(0, FOREVER)]


def clocks(bound=2):
    return {f"client-{n}": {"bound_ns": bound * MS} for n in (1, 2)}


def test_of_one_node_s_holds_the_one_that_ends_last_is_met_on_another_clock():
    story = Story()
    story.grant(1, "long", at=0, until=1000)
    story.grant(1, "short", at=100, until=300)
    story.grant(2, "late", at=500, until=1500)
    test = {"clocks": clocks(), "promises": {"reentrant": True}}
    found = lease_exclusion(story.history(), test).evidence
    assert [row["holds"] for row in found] == [["long", "late"]]


def test_shared_holds_do_not_meet_on_several_clocks_either():
    story = Story()
    story.grant(1, "a", at=0, until=1000, shared=True)
    story.grant(2, "b", at=100, until=1100, shared=True)
    assert lease_exclusion(story.history(), {"clocks": clocks()}).valid is True


def test_the_same_history_has_different_overlaps_for_another_test():
    story = Story()
    story.grant(1, "a", at=0, until=2000)
    story.release(1, "a", at=500, type="fail", kind="no-quorum")
    story.grant(2, "b", at=1000, until=3000)
    history = story.history()
    said = [
        lease_exclusion(history, {"failed_release": way}).valid
        for way in ("ended", "nothing", "ended")
    ]
    assert said == [True, False, True]


@pytest.mark.parametrize(
    ("lost", "believed"), [(1199, [(0, 1000)]), (1200, [(0, 1000), (1200, 1200)])]
)
def test_of_several_leases_those_from_the_strict_end_on_were_never_believed(lost, believed):
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.extend(1, "h", at=1200, until=2200)
    story.release(1, "h", at=lost)
    assert [(start / MS, end / MS) for start, end in only(story).believed] == believed


def test_of_several_leases_one_that_had_expired_on_arrival_was_never_believed():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.extend(1, "h", at=1200, until=1200)
    assert only(story).believed == [(0, 1000 * MS)]


@pytest.mark.parametrize("test", [{}, {"clocks": clocks()}])
@pytest.mark.parametrize("check", [lease_exclusion, mutual_exclusion])
def test_two_holds_of_one_process_are_no_overlap_and_hide_none(check, test):
    story = Story()
    story.grant(1, "outer", at=0, until=1000)
    story.grant(1, "inner", at=100, until=2000)
    assert check(story.history(), test).valid is True
    story.grant(2, "other", at=500, until=600)
    story.grant(2, "again", at=520, until=590)
    story.release(1, "inner", at=3000)
    story.release(1, "outer", at=3000)
    found = check(story.history(), test).evidence
    assert [row["holds"][1] for row in found] == ["other", "again"]
    assert {row["holds"][0] for row in found} <= {"outer", "inner"}
