"""Damage to the data is found, each kind by each proof, and no sound run is blamed."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checker.history import History, Op
from fencepost.checker.resource import resource
from histories import MS, Story
from oracles.resource import draw, verdict


def kinds(story, test=None):
    """Which writes were damaged, or which values were read from nowhere, and how."""
    history = story.history()
    found = resource(history, test or {})
    assert found.valid is (not found.evidence)
    last = [(row["kind"], history.ops[row["ops"][1]]) for row in found.evidence]
    first = [history.ops[row["ops"][0]].value.get("value") for row in found.evidence]
    return [
        (kind, op.value["value"] if kind == "phantom" else value)
        for (kind, op), value in zip(last, first, strict=True)
    ]


def test_writes_that_each_follow_what_their_writer_read_are_fine(story):
    story.read(1, 10, None, 0)
    story.write(1, 20, "a", 0, 1)
    story.read(2, 30, "a", 1)
    story.write(2, 40, "b", 1, 2)
    story.read(1, 50, "b", 2)
    assert kinds(story) == []
    untested = "stale writes (no write was made under a hold)"
    assert resource(story.history(), {}).summary == (
        f"2 accepted writes, each there and on top of what its writer read. Not tested: {untested}."
    )


def test_a_resource_that_accepted_nothing_is_unknown(story):
    story.write(1, 10, "a", 0, type="fail")
    story.write(2, 20, "b", 0, type="info")
    story.write(2, 25, "c", 0, type="fail")
    story.denied(3, 30, 40)
    found = resource(story.history(), {})
    assert found.valid == "unknown"
    assert found.summary == "No write was accepted: nothing was tested."
    assert (found.evidence, found.details) == ([], {"accepted": 0, "refused": 2})


def test_a_refused_write_damages_nothing(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="fail")
    story.read(3, 30, "a", 1)
    assert kinds(story) == []


def test_a_lost_update_shows_in_the_version_that_the_resource_gave(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, 2)
    assert kinds(story) == [("lost_update", "b")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert what.startswith(
        "'b', written by client-2 (process 2) and accepted by 0.020 s, built on version 0, but "
        "the resource stored it as version 2, on top of 1."
    )


def test_two_writes_on_one_version_prove_a_lost_update_without_numbers(story):
    story.write(1, 10, "a", 0)
    story.write(2, 20, "b", 0)
    assert kinds(story) == [("lost_update", "b")]


def test_a_read_that_shows_another_value_in_its_place_proves_a_lost_update(story):
    """What the writer of x had read is unknown; b should have been version 1 and is not."""
    story.write(1, 10, "x", None, type="info")
    story.write(2, 20, "b", 0)
    story.read(1, 30, "x", 1)
    assert kinds(story) == [("lost_update", "b")]


def test_a_later_version_read_before_the_write_was_sent_proves_a_lost_update(story):
    story.write(3, 5, "x", None, type="info")
    story.read(1, 10, "x", 5)
    story.write(2, 20, "b", 3)
    assert kinds(story) == [("lost_update", "b")]


def test_a_later_version_read_while_the_write_was_under_way_proves_nothing(story):
    story.write(3, 5, "x", None, type="info")
    story.write(2, 20, "b", 3, done=40)
    story.read(1, 30, "x", 5)
    assert kinds(story) == []


def test_a_write_of_unknown_outcome_counts_once_somebody_read_it(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="info")
    assert kinds(story) == []
    story.read(3, 30, "b", 2)
    assert kinds(story) == [("lost_update", "b")]


def test_a_write_that_never_completed_counts_once_somebody_read_it(story):
    story.write(1, 10, "a", 0, 1)
    story.call(2, "write", 20, None, {"resource": "account", "value": "b", "version": 0})
    story.read(3, 30, "b", 2)
    assert kinds(story) == [("lost_update", "b")]


def test_an_acknowledged_write_that_is_not_there_later_is_missing(story):
    story.write(1, 10, "a", 0, 1)
    story.read(2, 20, None, 0)
    assert kinds(story) == [("missing", "a")]
    assert "client-1" in resource(story.history(), {}).evidence[0]["what"]
    assert (
        "process 2 read version 0, None, at 0.020 s"
        in (resource(story.history(), {}).evidence[0]["what"])
    )


def test_a_write_is_missing_also_where_only_its_base_is_known(story):
    story.write(3, 5, "x", None, type="info")
    story.write(1, 10, "a", 4)
    story.read(2, 20, "x", 4)
    assert kinds(story) == [("missing", "a")]


def test_a_write_is_missing_though_others_were_read_in_between(story):
    story.write(1, 10, "a", 0, 1)
    story.read(2, 20, "a", 1)
    story.read(3, 30, None, 0)
    story.write(4, 40, "b", 0, 1)
    story.read(5, 50, "b", 1)
    assert ("missing", "a") in kinds(story)


def test_a_version_that_is_given_twice_means_that_the_first_write_is_gone(story):
    story.read(1, 5, None, 0)
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, 1)
    assert kinds(story) == [("missing", "a")]


def test_a_read_that_had_begun_before_the_acknowledgement_may_miss_the_write(story):
    story.write(1, 10, "a", 0, 1, done=20)
    story.read(2, 15, None, 0, done=30)
    assert kinds(story) == []


def test_a_write_of_unknown_outcome_is_not_missed(story):
    story.write(1, 10, "a", 0, type="info")
    story.write(2, 20, "b", 0, 1)
    story.read(3, 30, "b", 1)
    assert kinds(story) == []


def test_a_write_that_was_never_acknowledged_may_go_again_though_it_was_seen(story):
    story.write(1, 10, "a", 0, type="info")
    story.read(2, 20, "a", 1)
    story.read(3, 30, None, 0)
    assert kinds(story) == []


def two_holds(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=2000, until=3000)


def test_a_write_of_an_earlier_hold_after_a_later_holder_s_write_is_stale(story):
    """It is stale also where its writer had read the newest version."""
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, 2, hold="h1")
    assert kinds(story) == [("stale", "a")]


def test_a_late_write_before_the_later_holder_wrote_is_not_stale(story):
    two_holds(story)
    story.write(1, 2010, "a", 0, 1, hold="h1")
    story.write(2, 2020, "b", 1, 2, hold="h2")
    assert kinds(story) == []


def test_a_stale_write_that_is_refused_damages_nothing(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, hold="h1", type="fail")
    assert kinds(story) == []


def test_overlapping_writes_without_numbers_are_not_called_stale(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, done=2030, hold="h2")
    story.write(1, 2020, "a", 1, done=2040, hold="h1")
    assert kinds(story) == []


def test_the_damage_of_each_kind_is_counted(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 0, 2, hold="h1")
    found = resource(story.history(), {})
    assert found.details == {
        "accepted": 2,
        "refused": 0,
        "lost_update": 1,
        "missing": 0,
        "stale": 1,
        "phantom": 0,
        "untested": [],
    }


def test_a_refused_write_that_was_read_is_a_phantom_and_counts_as_accepted(story):
    story.write(1, 10, "b", 0, type="fail")
    story.read(2, 20, "b", 1)
    assert kinds(story) == [("phantom", "b")]
    found = resource(story.history(), {})
    assert found.details["accepted"] == 1
    assert found.evidence[0]["what"] == (
        "'b' was read by client-2 (process 2) at 0.020 s, and its write by client-1 (process 1) "
        "failed at 0.010 s. No fault was on at that time."
    )


def test_a_refused_write_that_was_applied_can_be_a_lost_update(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="fail")
    story.read(3, 30, "b", 2)
    assert kinds(story) == [("lost_update", "b"), ("phantom", "b")]


def test_a_value_that_nobody_wrote_is_a_phantom(story):
    story.read(2, 20, "x", 1)
    assert kinds(story) == [("phantom", "x")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert what.startswith(
        "'x' was read by client-2 (process 2) at 0.020 s, and nobody had written it."
    )


def test_a_value_that_was_read_before_it_was_written_is_a_phantom(story):
    story.read(2, 10, "a", 1)
    story.write(1, 20, "a", 0, 1)
    assert kinds(story) == [("phantom", "a")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert "and client-1 (process 1) did not send it before 0.020 s." in what


def test_a_read_proves_a_write_of_unknown_outcome_only_if_no_other_wrote_its_value(story):
    story.write(1, 10, "a", 5, type="info")
    story.write(2, 20, "a", 0, 1)
    story.read(3, 30, "a", 1)
    assert kinds(story) == []
    assert resource(story.history(), {}).details["accepted"] == 1


def test_of_two_acknowledged_writes_stored_as_one_version_one_is_missing(story):
    """Also when they were under way at one time."""
    story.write(1, 10, "a", 0, 1, done=20)
    story.write(2, 15, "b", 0, 1, done=25)
    assert kinds(story) == [("missing", "a")]
    story.read(3, 30, "a", 1)
    assert kinds(story) == [("missing", "b")]


def test_a_write_of_a_lower_version_after_the_acknowledgement_proves_it_missing(story):
    story.write(1, 10, "a", 4, 5)
    story.write(2, 20, "b", 2, 3)
    assert kinds(story) == [("missing", "a")]


def test_its_own_version_read_later_with_another_value_proves_it_missing(story):
    story.write(2, 5, "b", 0, type="info", done=40)
    story.write(1, 10, "a", 0, 1)
    story.read(3, 20, "b", 1)
    assert kinds(story) == [("missing", "a")]


def test_a_write_can_be_lost_and_missing(story):
    story.write(1, 10, "a", 0, 3)
    story.read(2, 20, None, 2)
    assert kinds(story) == [("lost_update", "a"), ("missing", "a")]


def test_its_own_version_read_before_with_another_value_proves_nothing(story):
    """A write of unknown outcome may be gone, and its number be given again."""
    story.write(2, 5, "b", 0, type="info")
    story.read(3, 8, "b", 1)
    story.write(1, 10, "a", 0, 1)
    assert kinds(story) == []


def test_the_later_hold_is_the_one_with_the_higher_token_though_its_grant_came_first(story):
    story.grant(2, "h2", at=5000, asked=4000, until=15000, token=2)
    story.write(2, 6000, "b", 0, 1, hold="h2")
    story.grant(1, "h1", at=10000, asked=0, until=3000, token=1)
    story.write(1, 10100, "a", 1, 2, hold="h1")
    story.write(2, 11000, "c", 2, 3, hold="h2")
    assert kinds(story) == [("stale", "a")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert "under hold h2 (token 2), granted at 5.000 s, which is later" in what
    assert "later than its own hold h1 (token 1), granted at 10.000 s" in what


def test_tokens_that_fell_within_the_bounds_of_clocks_still_tell_which_hold_is_later(story):
    story.grant(2, "h2", at=5000, asked=4000, until=15000, token=2)
    story.write(2, 6000, "b", 0, 1, hold="h2")
    story.grant(1, "h1", at=10000, asked=0, until=3000, token=1)
    story.write(1, 10100, "a", 1, 2, hold="h1")
    story.grant(3, "h3", at=20000, until=20001, token=9)
    story.grant(4, "h4", at=20002, until=20003, token=8)
    clocks = {f"client-{n}": {"bound_ns": 4 * MS} for n in (3, 4)}
    assert kinds(story) == []
    assert kinds(story, {"clocks": clocks}) == [("stale", "a")]


def test_a_hold_whose_release_failed_goes_on_where_the_test_says_so(story):
    """So that the other is in no order with it."""
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=500, type="fail")
    story.grant(2, "h2", at=700, until=1700)
    story.write(2, 800, "b", 0, 1, hold="h2")
    story.write(1, 900, "a", 1, 2, hold="h1")
    assert kinds(story) == [("stale", "a")]
    assert kinds(story, {"failed_release": "nothing"}) == []


def test_a_late_write_of_a_grant_that_came_late_before_the_later_holder_s_is_sound(story):
    story.grant(2, "h2", at=5000, asked=4000, until=15000, token=2)
    story.grant(1, "h1", at=10000, asked=0, until=3000, token=1)
    story.write(1, 10020, "a", 0, 1, hold="h1")
    story.write(2, 10200, "b", 1, 2, hold="h2")
    assert kinds(story) == []


def test_without_tokens_a_hold_that_was_asked_for_while_the_other_ran_is_in_no_order(story):
    story.grant(1, "h1", at=1000, asked=0, until=3000)
    story.grant(2, "h2", at=5000, asked=900, until=15000)
    story.write(2, 6000, "b", 0, 1, hold="h2")
    story.write(1, 7000, "a", 1, 2, hold="h1")
    assert kinds(story) == []


def test_a_write_of_unknown_outcome_was_there_from_the_first_read_of_it_on(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, type="info", done=2020, hold="h2")
    story.read(3, 2030, "b", 1, done=2040)
    story.write(1, 2050, "a", 1, hold="h1")
    story.read(3, 2060, "b", 1, done=2070)
    (stale,) = (e for e in resource(story.history(), {}).evidence if e["kind"] == "stale")
    assert stale == {
        "kind": "stale",
        "what": "'a', written by client-1 (process 1) and accepted by 2.050 s, was accepted though "
        "stale: client-2 (process 2) had written 'b' before under hold h2, granted at 2.000 s, "
        "which is later than its own hold h1, granted at 0.000 s. No fault was on at that time.",
        "time_ns": 2050 * MS,
        "resource": "account",
        "ops": [8, 9],
    }


def test_the_evidence_names_the_writer_and_the_read_that_showed_the_write(story):
    story.write(1, 10, "a", 0, 1)
    story.write(2, 20, "b", 0, type="info", done=25)
    story.read(3, 30, "b", 2, done=40)
    story.fault("pause", 5, 19, ["s1"])
    story.fault("pause", 22, 35, ["s2"])
    story.fault("pause", 41, 50, ["s3"])
    found = resource(story.history(), {})
    untested = "stale writes (no write was made under a hold)"
    assert found.summary == (
        f"Of 2 accepted writes: 1 overwrote what its writer had not seen. Not tested: {untested}."
    )
    assert found.evidence == [
        {
            "kind": "lost_update",
            "what": "'b', written by client-2 (process 2) and accepted by 0.040 s, built on "
            "version 0, but the resource stored it as version 2, on top of 1. On at that time: "
            "pause of s2 (from 0.022 s).",
            "time_ns": 40 * MS,
            "resource": "account",
            "ops": [6, 13],
        }
    ]


def test_the_evidence_of_a_phantom_names_the_read_and_the_faults_that_were_on(story):
    story.read(3, 30, "b", 2, done=40)
    story.fault("pause", 5, 19, ["s1"])
    story.fault("pause", 22, 35, ["s2"])
    assert resource(story.history(), {}).evidence == [
        {
            "kind": "phantom",
            "what": "'b' was read by client-3 (process 3) at 0.040 s, and nobody had written it. "
            "On at that time: pause of s2 (from 0.022 s).",
            "time_ns": 40 * MS,
            "resource": "account",
            "ops": [6, 9],
        }
    ]


def test_a_hold_that_was_granted_while_the_other_was_believed_is_in_no_order(story):
    story.grant(1, "h1", at=1000, until=3000)
    story.grant(2, "h2", at=2000, until=15000)
    story.write(2, 6000, "b", 0, 1, hold="h2")
    story.write(1, 7000, "a", 1, 2, hold="h1")
    assert kinds(story) == []


def test_a_write_under_another_lock_between_hides_no_stale_write(story):
    two_holds(story)
    story.grant(3, "h3", at=2100, until=9000, lock="invoices")
    story.write(2, 2200, "b", 0, 1, hold="h2")
    story.write(3, 2300, "c", 1, 2, hold="h3")
    story.write(1, 2400, "a", 2, 3, hold="h1")
    assert kinds(story) == [("stale", "a")]
    what = resource(story.history(), {}).evidence[0]["what"]
    assert "client-2 (process 2) had written 'b' before under hold h2, granted at 2.000 s" in what


def test_holds_of_two_locks_are_in_no_order(story):
    story.grant(1, "h1", at=0, until=1000, token=1, lock="invoices")
    story.grant(2, "h2", at=2000, until=3000, token=2)
    story.write(2, 2200, "b", 0, 1, hold="h2")
    story.write(1, 2400, "a", 1, 2, hold="h1")
    assert kinds(story) == []


def test_writes_of_two_resources_are_in_no_order(story):
    two_holds(story)
    story.write(2, 2200, "b", 0, 1, hold="h2")
    asked = {"resource": "stock", "value": "a", "version": 0, "hold": "h1"}
    story.call(1, "write", 2400, 2400, asked, {"stored": 1})
    assert kinds(story) == []


def test_an_unordered_hold_between_hides_no_stale_write(story):
    """h3 was asked for before h1 was granted: it is later than none, and its grant came last."""
    story.grant(1, "h1", at=100, until=1000)
    story.grant(2, "h2", at=2000, until=3000)
    story.grant(3, "h3", at=4000, asked=50, until=9000)
    story.write(2, 4200, "b", 0, 1, hold="h2")
    story.write(3, 4300, "c", 1, 2, hold="h3")
    story.write(1, 4400, "a", 2, 3, hold="h1")
    assert kinds(story) == [("stale", "a")]


def test_a_write_under_a_hold_that_the_history_does_not_have_is_in_no_order(story):
    two_holds(story)
    story.write(2, 2200, "b", 0, 1, hold="h2")
    story.write(1, 2400, "a", 1, 2, hold="h0")
    story.write(3, 2500, "c", 2, 3)
    assert kinds(story) == []


def test_a_name_that_two_holds_share_says_nothing(story):
    two_holds(story)
    story.grant(3, "h1", at=5000, until=6000)
    story.write(2, 5100, "b", 0, 1, hold="h2")
    story.write(1, 5200, "a", 1, 2, hold="h1")
    assert kinds(story) == []


def test_writes_are_ordered_by_the_numbers_of_the_resource_where_both_have_one(story):
    """b was acknowledged late, and was there before a all the same."""
    two_holds(story)
    story.write(2, 2200, "b", 0, 1, hold="h2", done=2900)
    story.write(1, 2400, "a", 1, 2, hold="h1", done=2500)
    assert kinds(story) == [("stale", "a")]


def test_a_write_without_a_number_is_ordered_by_time_beside_others_that_have_one(story):
    two_holds(story)
    story.write(2, 2200, "b", 0, None, hold="h2")
    story.write(1, 2400, "a", 1, 2, hold="h1")
    assert kinds(story) == [("stale", "a")]


def test_a_compare_and_set_resource_is_not_judged_for_stale_writes_and_says_so(story):
    two_holds(story)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, 2, hold="h1")
    assert kinds(story, {"guard": "compare-and-set"}) == []
    found = resource(story.history(), {"guard": "compare-and-set"})
    assert found.details["untested"] == ["stale writes (guard compare-and-set)"]
    assert found.summary == (
        "2 accepted writes, each there and on top of what its writer read. Not tested: stale "
        "writes (guard compare-and-set)."
    )


def test_what_no_write_could_show_is_named_as_untested(story):
    story.write(1, 10, "a", None, 1)
    asked = {"resource": "stock"}
    story.call(1, "read", 20, 20, asked, {"value": None, "version": 0})
    assert resource(story.history(), {}).details["untested"] == [
        "stock (no write was accepted)",
        "lost updates (no write says what its writer read)",
        "stale writes (no write was made under a hold)",
    ]


TWO_HOSTS = {"clocks": {f"client-{n}": {"offset_ns": 0, "bound_ns": 4_000_000} for n in (1, 2, 3)}}


def test_on_two_hosts_a_read_counts_as_later_only_beyond_the_bounds_of_both_clocks(story):
    story.write(1, 10, "a", 0, 1)
    story.read(2, 18, None, 0)
    assert kinds(story) == [("missing", "a")]
    assert kinds(story, TWO_HOSTS) == []
    story.read(3, 18.1, None, 0)
    assert kinds(story, TWO_HOSTS) == [("missing", "a")]


def test_on_two_hosts_a_hold_is_later_only_beyond_the_bounds_of_both_clocks(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1007, until=3000)
    story.write(2, 2010, "b", 0, 1, hold="h2")
    story.write(1, 2020, "a", 1, 2, hold="h1")
    assert kinds(story) == [("stale", "a")]
    assert kinds(story, TWO_HOSTS) == []


def test_on_two_hosts_a_hold_must_have_been_asked_for_after_the_other_s_grant(story):
    story.grant(1, "h1", asked=0, at=1000, until=3000)
    story.grant(2, "h2", asked=900, at=5000, until=9000)
    story.write(2, 5010, "b", 0, 1, hold="h2")
    story.write(1, 5020, "a", 1, 2, hold="h1")
    assert kinds(story, TWO_HOSTS) == []


def test_on_two_hosts_a_read_was_over_before_a_write_only_beyond_the_bounds_of_both_clocks(story):
    story.read(2, 10, "a", 1)
    story.write(1, 18, "a", 0, 1)
    assert kinds(story) == [("phantom", "a")]
    assert kinds(story, TWO_HOSTS) == []


def test_many_writes_that_time_alone_orders_are_all_found_stale(story):
    """Each hold overlaps the next and each has no number: the worst there is to compare."""
    ops = []
    many = 600
    for n in range(many):
        hold = {"lock": "orders", "hold": f"h{n}", "deadline": n + 5}
        ops.append((n, n, "invoke", "acquire", {"lock": "orders"}))
        ops.append((n, n, "ok", "acquire", hold))
        asked = {"resource": "account", "value": f"v{n}", "hold": f"h{many - n}", "version": None}
        ops.append((many + n, n, "invoke", "write", asked))
        ops.append((many + n, n, "ok", "write", asked))
    ops.sort(key=lambda op: op[0])
    history = History([Op(i, *op, None, None) for i, op in enumerate(ops)])
    assert resource(history, {}).details["stale"] > many / 2


class Simulated:
    """Clients that read, modify and write a register, interleaved at random, and the truth.

    Each op takes three moments: it is sent, it takes effect, it is answered; another client's
    may come between any two. `unsure` answers are lost: the op may have taken effect or not.
    """

    def __init__(self, seed: int, locked: bool, numbered: bool, unsure: float) -> None:
        self.story = Story()
        # The writes that took effect on another version than the one that their writer had read.
        self.lost: set[str] = set()
        self.answered: set[str] = set()
        self._random = Random(seed)
        self._numbered, self._unsure, self._locked = numbered, unsure, locked
        self._value: str | None = None
        self._version = 0
        self._holder: int | None = None
        self._at = 0
        self._processes = 0
        clients = [self._client() for _ in range(3)]
        for _ in range(60):
            next(self._random.choice(clients))

    def _tick(self) -> int:
        self._at += 1
        return self._at

    def _client(self):
        while True:
            self._processes += 1
            yield from self._process(self._processes)

    def _process(self, me: int):
        """One process' life: it ends with its first op of unknown outcome."""
        count = 0
        while True:
            count += 1
            hold = f"{me}-{count}"
            if self._locked:
                while self._holder is not None:
                    yield
                self._holder = me
                self.story.grant(me, hold, self._tick(), until=None)
            version = yield from self._read(me)
            sure = yield from self._write(me, f"{me}.{count}", version, hold)
            if self._locked:
                if sure:
                    self.story.release(me, hold, self._tick())
                self._holder = None
            if not sure:
                return

    def _read(self, me: int):
        sent = self._tick()
        yield
        value, version = self._value, self._version
        yield
        self.story.read(me, sent, value, version, done=self._tick())
        return version

    def _write(self, me: int, value: str, version: int, hold: str):
        asked = {"resource": "account", "value": value, "version": version}
        asked |= {"hold": hold} if self._locked else {}
        self.story.op(self._tick(), me, "invoke", "write", asked)
        unsure = self._random.random() < self._unsure
        answer: dict[str, int] = {}
        yield
        if not unsure or self._random.random() < 0.5:
            if self._version != version:
                self.lost.add(value)
            self._value, self._version = value, self._version + 1
            answer = {"stored": self._version} if self._numbered and not unsure else {}
        yield
        if not unsure:
            self.answered.add(value)
        self.story.op(self._tick(), me, "info" if unsure else "ok", "write", asked | answer)
        return not unsure


SEEDS = st.integers(0, 2**32)


@given(SEEDS)
@settings(deadline=None, max_examples=400)
def test_the_verdict_is_that_of_looking_at_every_pair(seed):
    ops, test = draw(Random(seed))
    assert resource(History(ops), test).valid in verdict(ops, test)


@given(SEEDS, st.booleans(), st.sampled_from([0, 0.4]))
@settings(deadline=None, max_examples=60)
def test_clients_that_a_correct_lock_keeps_apart_are_never_blamed(seed, numbered, unsure):
    run = Simulated(seed, locked=True, numbered=numbered, unsure=unsure)
    assert run.lost == set()
    assert kinds_or_unknown(run) == set()


@given(SEEDS, st.sampled_from([0, 0.4]))
@settings(deadline=None, max_examples=60)
def test_with_the_resource_s_numbers_every_lost_update_is_found_and_no_other(seed, unsure):
    run = Simulated(seed, locked=False, numbered=True, unsure=unsure)
    found = kinds_or_unknown(run)
    assert run.lost & run.answered <= found <= run.lost


@given(SEEDS, st.sampled_from([0, 0.4]))
@settings(deadline=None, max_examples=60)
def test_without_the_resource_s_numbers_no_update_is_called_lost_that_was_not(seed, unsure):
    """Of two on one version the one sent later is named, and either may be the one to blame."""
    run = Simulated(seed, locked=False, numbered=False, unsure=unsure)
    found = kinds_or_unknown(run)
    assert len(found) <= len(run.lost)


def test_the_simulation_loses_updates_without_a_lock():
    assert any(Simulated(seed, False, True, 0).lost for seed in range(5))


def kinds_or_unknown(run) -> set[str]:
    """The writes that were called lost; nothing else may be wrong with the register."""
    history = run.story.history()
    found = resource(history, {})
    assert {row["kind"] for row in found.evidence} <= {"lost_update"}
    return {history.ops[row["ops"][0]].value["value"] for row in found.evidence}


def test_a_lock_s_tokens_order_nothing_once_one_fell_along_certain_time(story):
    """Redlock's random values, read as tokens: the later hold has the lower one."""
    story.grant(1, "h1", at=0, until=1000, token=900)
    story.read(1, 1, None, 0)
    story.write(1, 2, "a", 0, 1, hold="h1", token=900)
    story.release(1, "h1", 3)
    story.grant(2, "h2", at=10, until=1000, token=5)
    story.read(2, 11, "a", 1)
    story.write(2, 12, "b", 1, 2, hold="h2", token=5)
    assert kinds(story) == []


def test_numbers_that_contradict_certain_time_order_no_writes(story):
    """The store gave a number again: what it says is not booked on the lock."""
    story.grant(1, "h1", at=0, until=1000, token=1)
    story.write(1, 20, "a", None, 2, done=21, hold="h1", token=1)
    story.release(1, "h1", 30)
    story.grant(2, "h2", at=50, until=1000, token=2)
    story.write(2, 60, "b", None, 1, done=61, hold="h2", token=2)
    assert "stale" not in {kind for kind, _ in kinds(story)}
