"""Holds, strict and believed, and whether two of them were on at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from fencepost.checker.history import History
from fencepost.checker.holds import FOREVER, holds
from histories import MS, Story


def only(story, **test):
    (hold,) = holds(story.history(), test)
    return hold


def verdicts(story, **test):
    history = story.history()
    return lease_exclusion(history, test).valid, mutual_exclusion(history, test).valid


def test_a_hold_starts_when_acquire_returns_and_ends_when_its_release_is_invoked():
    story = Story()
    story.grant(1, "h", at=50, until=1000, asked=10)
    story.release(1, "h", at=200, done=300)
    hold = only(story)
    assert (hold.asked, hold.start, hold.strict_end) == (10 * MS, 50 * MS, 200 * MS)
    assert hold.believed == [(50 * MS, 200 * MS)]
    assert hold.ended_by == "release"


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


def test_a_failed_release_ends_the_hold_or_does_nothing_as_the_test_says():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.release(1, "h", at=100, type="fail")
    assert only(story).strict_end == 100 * MS
    assert only(story, failed_release="ended").strict_end == 100 * MS
    assert only(story, failed_release="nothing").strict_end == FOREVER


def test_a_release_that_succeeds_after_one_that_did_nothing_ends_the_hold():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.release(1, "h", at=100, type="fail")
    story.release(1, "h", at=200)
    assert only(story, failed_release="nothing").strict_end == 200 * MS


def test_the_meaning_of_a_failed_release_decides_and_is_printed_with_the_verdict():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, type="fail")
    story.grant(2, "h2", at=200, until=1200)
    assert verdicts(story) == (True, True)
    assert verdicts(story, failed_release="nothing") == (False, False)
    told = lease_exclusion(story.history(), {"failed_release": "nothing"})
    assert told.details["failed_release"] == "nothing"
    assert lease_exclusion(story.history(), {}).details["failed_release"] == "ended"


def test_a_release_of_unknown_outcome_ends_the_hold_when_it_was_asked_for():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.release(1, "h", at=100, done=900, type="info")
    hold = only(story)
    assert (hold.strict_end, hold.ended_by) == (100 * MS, "release")


def test_a_hold_that_its_library_gave_up_is_over_when_it_said_so():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.op(300, 1, "info", "lost", {"lock": "orders", "hold": "h"})
    story.release(1, "h", at=400)
    hold = only(story)
    assert (hold.strict_end, hold.ended_by) == (300 * MS, "lost")


def test_a_killed_process_holds_until_its_own_last_sign_of_life():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.call(1, "read", 200, None, {"resource": "account"})
    story.killed(1, 700, "read")
    hold = only(story)
    assert (hold.strict_end, hold.ended_by) == (200 * MS, "death")


def test_a_process_killed_between_two_ops_is_known_from_the_receipt_of_the_kill():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.fault("kill", 500, 600, ["client-1"], processes=[1])
    hold = only(story)
    assert (hold.strict_end, hold.gone_by, hold.ended_by) == (500 * MS, 500 * MS, "death")


def test_a_killed_process_is_seen_alive_until_the_kill_was_ordered():
    """Its op was open for long; that it was alive is what the receipt of the kill shows."""
    story = Story()
    story.grant(1, "h", at=0, until=10_000)
    story.call(1, "write", 50, None, {"resource": "account"})
    story.fault("kill", 8000, 9000, ["client-1"], processes=[1])
    story.killed(1, 8001, "write")
    hold = only(story)
    assert (hold.strict_end, hold.gone_by, hold.ended_by) == (8000 * MS, 8000 * MS, "death")
    story.grant(2, "h2", at=3000, until=13_000)
    assert verdicts(story) == (False, False)


def test_a_process_that_is_told_dead_before_the_receipt_of_the_kill_was_killed():
    story = Story()
    story.grant(1, "h", at=50, until=1000)
    value = {"fault": "k", "phase": "start", "targets": ["client-1"]}
    story.op(100, "nemesis", "invoke", "kill", value)
    story.op(60, 1, "invoke", "read", {"resource": "account"})
    story.killed(1, 150, "read")
    receipt = {"receipt": {"proved": True, "processes": [1]}}
    story.op(200, "nemesis", "ok", "kill", value | receipt)
    hold = only(story)
    assert (hold.strict_end, hold.gone_by) == (100 * MS, 200 * MS)


def test_a_kill_without_a_name_was_ordered_by_the_last_op_of_its_family():
    story = Story()
    story.grant(1, "h", at=50, until=1000)
    story.op(100, "nemesis", "invoke", "kill", {"phase": "start"})
    story.op(150, "nemesis", "invoke", "pause", {"phase": "start"})
    receipt = {"receipt": {"proved": True, "processes": [1]}}
    story.op(200, "nemesis", "ok", "kill", {"phase": "start"} | receipt)
    assert only(story).strict_end == 100 * MS


def test_a_kill_of_which_only_the_receipt_is_known_happened_then():
    story = Story()
    story.grant(1, "h", at=50, until=1000)
    receipt = {"receipt": {"proved": True, "processes": [1]}}
    story.op(200, "nemesis", "ok", "kill", {"phase": "start"} | receipt)
    assert only(story).strict_end == 200 * MS


def test_a_process_that_had_died_before_it_was_killed_was_alive_until_its_last_op():
    story = Story()
    story.grant(1, "h", at=0, until=10_000)
    story.call(1, "write", 50, None, {"resource": "account"})
    story.killed(1, 700, "write")
    story.fault("kill", 8000, 9000, ["client-1"], processes=[1])
    hold = only(story)
    assert (hold.strict_end, hold.gone_by) == (50 * MS, 700 * MS)


def test_a_kill_without_proof_ends_nobody_s_hold():
    story = Story()
    story.grant(1, "h", at=0, until=10_000)
    story.fault("kill", 500, 600, ["client-1"], proved=False, processes=[1])
    assert only(story).strict_end == FOREVER


def test_a_close_ends_the_holds_of_its_client_when_it_is_invoked():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.write(1, 100, "v", 0, done=300, type="info")
    story.call(1, "close", 310, 400, {})
    for ends_with in ("lease", "close", "connection"):
        hold = only(story, lock={"ends_with": ends_with})
        assert (hold.strict_end, hold.gone_by, hold.ended_by) == (310 * MS, 310 * MS, "close")


def test_a_hold_that_is_granted_after_a_close_is_not_ended_by_it():
    story = Story()
    story.call(1, "close", 0, 5, {})
    story.grant(1, "h", at=10, until=1000)
    assert only(story).strict_end == FOREVER


def test_a_release_by_another_process_ends_nobody_s_hold():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.release(2, "h", at=100)
    assert only(story).strict_end == FOREVER


def nameless(story, process, at, until):
    asked = {"lock": "orders", "ttl": 1000 * MS}
    story.call(process, "acquire", at, at, asked, {"deadline": until * MS})


def test_holds_without_names_are_told_apart_by_process_and_order():
    """As in Jepsen's histories: a release ends its process' latest hold and no other."""
    story = Story()
    nameless(story, 1, 0, 1000)
    story.call(1, "release", 100, 110, {"lock": "orders"})
    nameless(story, 1, 200, 1200)
    nameless(story, 2, 300, 1300)
    story.call(2, "release", 400, 410, {"lock": "orders"})
    ends = [hold.strict_end for hold in holds(story.history(), {})]
    assert ends == [100 * MS, FOREVER, 400 * MS]
    assert verdicts(story) == (False, False)


def test_a_hold_of_a_lock_that_ends_with_its_connection_may_end_while_its_client_is_cut_off():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.fault("partition", 300, 900, ["client-1"], arguments={"links": [["client-1", "s1"]]})
    story.grant(2, "h2", at=400, until=1400)
    test = {"servers": ["s1"]}
    assert verdicts(story, **test, lock={"ends_with": "connection"}) == (True, False)
    assert verdicts(story, **test, lock={"ends_with": "close"}) == (False, False)
    assert verdicts(story, servers=["s2"], lock={"ends_with": "connection"}) == (False, False)


def test_a_cut_of_which_nobody_says_what_it_cuts_may_have_ended_the_connection():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.fault("gremlin", 300, 900, ["client-1"])
    story.grant(2, "h2", at=400, until=1400)
    assert verdicts(story, lock={"ends_with": "connection"}) == (True, False)
    assert verdicts(story) == (False, False)


def clocks(bound, *clients):
    return {f"client-{n}": {"offset_ns": 0, "bound_ns": bound * MS} for n in clients}


@pytest.mark.parametrize(("start", "valid"), [(991, False), (992, True), (993, True)])
def test_an_overlap_within_the_bounds_of_two_hosts_clocks_is_no_overlap(start, valid):
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=start, until=2000)
    found = lease_exclusion(story.history(), {"clocks": clocks(4, 1, 2)})
    assert found.valid is valid
    assert found.details["uncertain"] == (1 if valid else 0)


def test_on_one_host_the_bounds_of_its_clock_do_not_matter():
    story = Story()
    for process in (1, 6):
        story.grant(process, f"h{process}", at=process, until=10)
    history = story.history()
    ops = [replace(op, node="client-1") for op in history.ops]
    assert lease_exclusion(History(ops), {"clocks": clocks(4, 1)}).valid is False


def test_a_short_hold_deep_within_another_is_an_overlap_whatever_the_bounds():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=500, until=501)
    story.release(2, "h2", at=501)
    assert verdicts(story, clocks=clocks(4, 1, 2)) == (False, False)


def test_an_exclusive_hold_beside_a_shared_one_is_an_overlap_in_either_order():
    for first, second in (("shared", None), (None, "shared")):
        story = Story()
        for process, mode in ((1, first), (2, second)):
            asked = {"lock": "orders", "ttl": 1000 * MS} | ({"mode": mode} if mode else {})
            answer = {"hold": f"h{process}", "token": None, "deadline": 1000 * MS}
            story.call(process, "acquire", process, process, asked, answer)
        assert verdicts(story) == (False, False)


def test_what_was_not_put_to_the_test_is_named():
    story = Story()
    story.grant(1, "h", at=0, until=None)
    believed = lease_exclusion(story.history(), {})
    assert believed.details["untested"] == [
        "two clients that want one lock",
        "a lease that the client can see",
    ]
    strict = mutual_exclusion(story.history(), {})
    assert strict.details["untested"] == ["two clients that want one lock"]
    assert strict.summary.endswith("Not tested: two clients that want one lock.")
    story.grant(2, "h2", at=2000, until=3000)
    story.release(1, "h", at=1000)
    assert lease_exclusion(story.history(), {}).details["untested"] == []


def test_a_client_that_goes_on_as_another_process_is_the_same_client():
    story = Story()
    for process in (1, 2):
        story.grant(process, f"h{process}", at=1000 * process, until=1000 * process + 100)
    ops = [replace(op, node="client-1") for op in story.history()]
    found = lease_exclusion(History(ops), {})
    assert found.details["untested"] == ["two clients that want one lock"]


def test_the_kill_of_a_server_ends_nobody_s_hold():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.fault("kill", 500, 600, ["redis-1"], pid=1)
    assert only(story).strict_end == FOREVER


def test_a_process_whose_op_ended_unknown_is_gone_from_then_on():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.write(1, 100, "v", 0, done=300, type="info")
    hold = only(story)
    assert (hold.strict_end, hold.ended_by) == (300 * MS, "gone")


def test_an_extension_moves_the_deadline():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.extend(1, "h", at=900, until=1900)
    hold = only(story)
    assert hold.believed == [(0, 1900 * MS)]
    assert hold.deadline == 1900 * MS


def test_an_extension_in_the_instant_of_the_deadline_goes_on_with_the_lease():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.extend(1, "h", at=1000, until=2000)
    assert only(story).leases == ((0, 2000 * MS),)


def test_a_grant_that_names_no_lock_is_of_the_lock_without_a_name():
    story = Story()
    story.call(1, "acquire", 10, 10, {}, {"hold": "h", "deadline": None})
    assert only(story).lock == ""


def test_only_extensions_that_were_granted_are_extensions_of_a_hold():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.extend(1, "h", at=100, until=1100)
    story.extend(1, "h", at=200, until=None, type="fail")
    story.extend(1, "h", at=300, until=None, type="info")
    assert only(story).extends == (3,)


def test_a_hold_without_a_name_goes_by_the_position_of_its_grant():
    story = Story()
    for at in (10, 20):
        story.call(1, "acquire", at, at, {"lock": "orders"}, {"deadline": None})
    assert [hold.name for hold in holds(story.history())] == ["1", "3"]


def test_an_extension_that_failed_moves_nothing():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.extend(1, "h", at=900, until=None, type="fail")
    assert only(story).believed == [(0, 1000 * MS)]


def test_an_extension_after_the_lease_had_run_out_is_a_second_lease():
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


def test_a_client_paused_past_its_lease_does_not_break_lease_exclusion():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.fault("pause", 100, 1500, ["client-1"])
    story.grant(2, "h2", at=1010, until=2010)
    story.release(1, "h1", at=1600, type="fail")
    assert verdicts(story) == (True, False)


def test_a_lock_granted_twice_while_leased_breaks_both():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=400, until=1400)
    assert verdicts(story) == (False, False)


def test_the_evidence_says_who_when_how_long_and_which_fault_was_on():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.fault("clock", 300, 2000, ["redis-3"], arguments={"words": "redis-3 jumps"})
    story.grant(2, "h2", at=400, until=1400)
    verdict = lease_exclusion(story.history(), {})
    assert verdict.summary == (
        "1 of 2 holds were granted while another's believed hold was on; the first at 0.400 s."
    )
    assert verdict.evidence == [
        {
            "what": (
                "client-2 (process 2) was granted hold h2 at 0.400 s, while client-1 (process 1) "
                "had hold h1 since 0.000 s, whose lease ran until 1.000 s: two holders for "
                "0.600 s. On at that time: redis-3 jumps (from 0.300 s)."
            ),
            "time_ns": 400 * MS,
            "until_ns": 1000 * MS,
            "lock": "orders",
            "holds": ["h1", "h2"],
            "ops": [1, 5],
        }
    ]


def test_the_evidence_of_a_strict_overlap_says_when_and_how_the_first_hold_was_given_up():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1010, until=2010)
    story.release(1, "h1", at=1600)
    verdict = mutual_exclusion(story.history(), {})
    assert verdict.summary == (
        "1 of 2 holds were granted while another's strict hold was on; the first at 1.010 s."
    )
    assert verdict.evidence == [
        {
            "what": (
                "client-2 (process 2) was granted hold h2 at 1.010 s, while client-1 (process 1) "
                "had hold h1 since 0.000 s, which its holder gave up at 1.600 s (release): two "
                "holders for 0.590 s. No fault was on at that time."
            ),
            "time_ns": 1010 * MS,
            "until_ns": 1600 * MS,
            "lock": "orders",
            "holds": ["h1", "h2"],
            "ops": [1, 3],
        }
    ]


@pytest.mark.parametrize(
    ("checker", "kind"), [(lease_exclusion, "believed"), (mutual_exclusion, "strict")]
)
def test_a_verdict_without_overlaps_says_what_was_compared(checker, kind):
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=500)
    story.grant(2, "h2", at=600, until=1600)
    found = checker(story.history(), {"lock": {"ends_with": "close"}})
    assert found.valid is True
    assert found.summary == f"None of 2 holds overlapped another's {kind} hold."
    assert found.evidence == []
    assert found.details == {
        "holds": 2,
        "failed_release": "ended",
        "ends_with": "close",
        "untested": [],
    }


def test_a_hold_that_nobody_ever_gave_up_is_told_without_a_length():
    story = Story()
    story.grant(1, "h1", at=0, until=None)
    story.grant(2, "h2", at=400, until=None)
    evidence = mutual_exclusion(story.history(), {}).evidence[0]
    assert "which its holder never gave up: two holders." in evidence["what"]
    assert "No fault was on at that time." in evidence["what"]
    assert evidence["until_ns"] is None


def test_the_length_of_an_overlap_is_told_to_the_millisecond_however_long_it_is():
    story = Story()
    story.grant(1, "h1", at=0, until=2_000_000_000)
    story.grant(2, "h2", at=400, until=3_000_000_000)
    what = lease_exclusion(story.history(), {}).evidence[0]["what"]
    assert ": two holders for 1999999.600 s." in what


def test_holds_that_touch_do_not_overlap():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=500)
    story.grant(2, "h2", at=500, until=700)
    story.grant(3, "h3", at=700, until=900)
    assert lease_exclusion(story.history(), {}).valid is True


def test_a_hold_that_was_lost_before_its_grant_arrived_was_never_on():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=200)
    story.grant(2, "h2", asked=50, at=100, until=1100)
    story.op(90, 2, "info", "lost", {"lock": "orders", "hold": "h2"})
    assert verdicts(story) == (True, True)


def test_two_locks_exclude_nobody_from_one_another():
    story = Story()
    story.grant(1, "h1", at=0, until=1000, lock="a")
    story.grant(2, "h2", at=100, until=1000, lock="b")
    assert verdicts(story) == (True, True)
    story.grant(3, "h3", at=200, until=1000, lock="b")
    assert verdicts(story) == (False, False)


def test_a_third_holder_is_named_though_the_second_had_gone():
    """The first hold outlasts the second, and it is the first that the third runs into."""
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=100, until=200)
    story.grant(3, "h3", at=500, until=1500)
    evidence = lease_exclusion(story.history(), {}).evidence
    assert [row["holds"] for row in evidence] == [["h1", "h2"], ["h1", "h3"]]


@pytest.mark.parametrize("checker", [lease_exclusion, mutual_exclusion])
def test_a_lock_that_was_never_granted_is_unknown(checker):
    story = Story()
    story.denied(1, 0, 100)
    found = checker(story.history(), {})
    assert found.valid == "unknown"
    assert found.summary == "The lock was never granted: nothing was tested."
    assert found.evidence == []
    assert found.details == {"holds": 0, "failed_release": "ended", "ends_with": "lease"}


@pytest.mark.parametrize("asked", [0, 100])
def test_a_grant_that_arrives_late_behind_a_cut_was_never_believed(asked):
    """Its connection was lost while it waited, and the lock given on: PostgreSQL does so."""
    story = Story()
    links = {"links": [["client-1", "s1"]]}
    story.fault("partition", 100, 2400, ["client-1"], arguments=links)
    story.grant(2, "b", at=2000, until=None, asked=50)
    story.grant(1, "a", at=2500, until=None, asked=asked)
    story.release(2, "b", at=2600)
    test = {"servers": ["s1"], "lock": {"ends_with": "connection"}}
    assert verdicts(story, **test) == (True, False)
    assert verdicts(story, servers=["s1"], lock={"ends_with": "close"}) == (False, False)


def test_a_cut_that_was_over_before_the_acquire_ends_nothing():
    story = Story()
    links = {"links": [["client-1", "s1"]]}
    story.fault("partition", 0, 50, ["client-1"], arguments=links)
    story.grant(1, "a", at=100, until=1000, asked=60)
    story.grant(2, "b", at=200, until=1000)
    test = {"servers": ["s1"], "lock": {"ends_with": "connection"}}
    assert verdicts(story, **test) == (False, False)


def extends(story, type, done, until=None):
    asked = {"lock": "orders", "hold": "a", "ttl": 200 * MS}
    answer = {} if until is None else {"deadline": until * MS}
    error = None if type == "ok" else ["timeout", "-"]
    story.call(1, "extend", 100, done, asked, answer, type, error)


@pytest.mark.parametrize(("type", "valid"), [("ok", True), ("info", True), ("fail", False)])
def test_who_asks_for_a_shorter_lease_counts_on_no_more_from_then_on(type, valid):
    story = Story()
    story.grant(1, "a", at=0, until=1000)
    extends(story, type, 2000, 300 if type == "ok" else None)
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


def test_a_renewal_that_tells_an_earlier_deadline_is_believed():
    story = Story()
    story.grant(1, "a", at=0, until=1000)
    value = {"lock": "orders", "hold": "a", "deadline": 500 * MS}
    story.op(200, 1, "info", "renewed", value)
    assert only(story).believed == [(0, 500 * MS)]


@pytest.mark.parametrize(
    ("ends_with", "until"), [("lease", 1000), ("close", 1000), ("connection", 200)]
)
def test_a_connection_may_be_gone_once_its_holder_was_told_that_the_lock_is_lost(ends_with, until):
    """Nobody wrote a close. A session's lease runs on."""
    story = Story()
    story.grant(1, "a", at=0, until=1000)
    story.op(200, 1, "info", "lost", {"lock": "orders", "hold": "a"})
    may_end = only(story, lock={"ends_with": ends_with}).may_end
    assert min(may_end, 1000 * MS) == until * MS


def test_an_extend_does_not_end_the_belief_of_a_holder_that_sees_no_lease():
    story = Story()
    story.grant(1, "a", at=0, until=None)
    extends(story, "ok", 110)
    assert only(story).believed == [(0, FOREVER)]
