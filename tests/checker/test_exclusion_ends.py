"""A hold ends with its release, its loss, its client or its connection, whichever came first."""

from __future__ import annotations

import pytest

from fencepost.checker.exclusion import lease_exclusion
from fencepost.checker.facts.holds import FOREVER, holds
from tests.checker.exclusion_stories import only, verdicts
from tests.histories import MS, Story


def test_a_hold_starts_when_acquire_returns_and_ends_when_its_release_is_invoked():
    story = Story()
    story.grant(1, "h", at=50, until=1000, asked=10)
    story.release(1, "h", at=200, done=300)
    hold = only(story)
    assert (hold.asked, hold.start, hold.strict_end) == (10 * MS, 50 * MS, 200 * MS)
    assert hold.believed == [(50 * MS, 200 * MS)]
    assert hold.ended_by == "release"


def test_a_failed_release_ends_the_hold_or_does_nothing_as_the_test_says():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.release(1, "h", at=100, type="fail", kind="no-quorum")
    assert only(story).strict_end == 100 * MS
    assert only(story, failed_release="ended").strict_end == 100 * MS
    assert only(story, failed_release="nothing").strict_end == FOREVER


def test_a_release_that_succeeds_after_one_that_did_nothing_ends_the_hold():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.release(1, "h", at=100, type="fail", kind="no-quorum")
    story.release(1, "h", at=200)
    assert only(story, failed_release="nothing").strict_end == 200 * MS


def test_the_meaning_of_a_failed_release_decides_and_is_printed_with_the_verdict():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, type="fail", kind="no-quorum")
    story.grant(2, "h2", at=200, until=1200)
    assert verdicts(story) == (True, True)
    assert verdicts(story, failed_release="nothing") == (False, False)
    told = lease_exclusion(story.history(), {"failed_release": "nothing"})
    assert told.details["failed_release"] == "nothing"
    assert lease_exclusion(story.history(), {}).details["failed_release"] == "ended"


def test_a_release_of_unknown_outcome_ends_the_hold_at_its_invocation():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.release(1, "h", at=100, done=900, type="info")
    hold = only(story)
    assert (hold.strict_end, hold.ended_by) == (100 * MS, "release")


def test_a_hold_that_its_library_gave_up_ends_when_it_reported_so():
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
    """Its op was open for long; the receipt of the kill proves that it was alive."""
    story = Story()
    story.grant(1, "h", at=0, until=10_000)
    story.call(1, "write", 50, None, {"resource": "account"})
    story.fault("kill", 8000, 9000, ["client-1"], processes=[1])
    story.killed(1, 8001, "write")
    hold = only(story)
    assert (hold.strict_end, hold.gone_by, hold.ended_by) == (8000 * MS, 8000 * MS, "death")
    story.grant(2, "h2", at=3000, until=13_000)
    assert verdicts(story) == (False, False)


def test_a_process_reported_dead_before_the_receipt_of_the_kill_was_killed():
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


def test_each_of_two_kills_at_a_time_was_ordered_by_its_own_op():
    story = Story()
    story.grant(1, "h", at=50, until=1000)
    for process, ordered in ((1, 100), (2, 200)):
        node = f"client-{process}"
        story.fault("kill", ordered, 900, [node], placed=ordered + 200, processes=[process])
    assert only(story).strict_end == 100 * MS


def test_a_kill_of_which_only_the_receipt_is_known_happened_then():
    story = Story()
    story.grant(1, "h", at=50, until=1000)
    receipt = {"receipt": {"proved": True, "processes": [1]}}
    story.op(200, "nemesis", "ok", "kill", {"phase": "start", "forgets": True} | receipt)
    assert only(story).strict_end == 200 * MS


@pytest.mark.parametrize(("died", "end"), [(7999, (50, 7999)), (8000, (8000, 8000))])
def test_a_process_that_had_died_before_it_was_killed_was_alive_until_its_last_op(died, end):
    story = Story()
    story.grant(1, "h", at=0, until=10_000)
    story.call(1, "write", 50, None, {"resource": "account"})
    story.killed(1, died, "write")
    story.fault("kill", 8000, 9000, ["client-1"], processes=[1])
    hold = only(story)
    assert (hold.strict_end, hold.gone_by) == (end[0] * MS, end[1] * MS)


def test_a_kill_without_proof_ends_no_hold_for_certain():
    story = Story()
    story.grant(1, "h", at=0, until=10_000)
    story.fault("kill", 500, 600, ["client-1"], proved=False, processes=[1])
    hold = only(story)
    assert (hold.gone_by, hold.believed) == (FOREVER, [(0, 10_000 * MS)])


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


def test_a_release_by_another_process_ends_no_hold():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.release(2, "h", at=100)
    assert only(story).strict_end == FOREVER


def nameless(story, process, at, until):
    asked = {"lock": "orders", "ttl": 1000 * MS}
    story.call(process, "acquire", at, at, asked, {"deadline": until * MS})


def test_holds_without_names_are_distinguished_by_process_and_order():
    """As in Jepsen's histories, a release ends its process' latest hold and no other."""
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


@pytest.mark.parametrize(
    ("ends", "kept"),
    [
        ({"client-1": []}, False),
        ({"client-1": [300]}, True),
        ({"client-1": [401]}, False),
        ({"client-2": [300]}, True),  # of client-1 nothing is known: the cut may have ended it
    ],
)
def test_where_the_ends_of_sessions_are_known_a_fault_ends_none(ends, kept):
    """A time-out taken for a grant: client-1 was cut off, and its session never ended."""
    story = Story()
    links = {"links": [["client-1", "s1"]]}
    story.fault("partition", 100, 900, ["client-1"], arguments=links)
    story.grant(1, "h1", asked=50, at=200, until=None)
    story.grant(2, "h2", asked=150, at=400, until=None)
    known = {node: [at * MS for at in times] for node, times in ends.items()}
    test = {"servers": ["s1"], "lock": {"ends_with": "connection"}, "session_ends": known}
    assert verdicts(story, **test)[0] is kept


def test_an_extend_shows_that_a_hold_survived_the_end_of_another_session():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.extend(1, "h1", at=400, until=1300)
    story.grant(2, "h2", at=600, until=1600)
    test = {"servers": ["s1"], "lock": {"ends_with": "connection"}}
    for end, kept in ((300, False), (400, True), (500, True)):
        assert verdicts(story, **test, session_ends={"client-1": [end * MS]})[0] is kept


def test_times_that_are_no_times_of_sessions_are_refused():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    with pytest.raises(ValueError, match="session_ends is no object of lists"):
        holds(story.history(), {"session_ends": ["client-1"]})


def test_a_cut_without_recorded_targets_may_have_ended_the_connection():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.fault("gremlin", 300, 900, ["client-1"])
    story.grant(2, "h2", at=400, until=1400)
    assert verdicts(story, lock={"ends_with": "connection"}) == (True, False)
    assert verdicts(story) == (False, False)


@pytest.mark.parametrize(
    ("family", "target", "kept"),
    [("kill", "s1", True), ("power", "s1", True), ("failover", "s1", True), ("disk", "s1", True),
     ("pause", "s1", False), ("clock", "s1", False), ("kill", "storage", False),
     ("kill", "client-2", False)],
)  # fmt: skip
def test_the_end_of_a_server_ends_its_connections_and_their_holds(family, target, kept):
    """PostgreSQL's locks last as long as their session; its client has not noticed the end."""
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.fault(family, 300, 350, [target])
    story.grant(2, "h2", at=400, until=1400)
    test = {"servers": ["s1"]}
    assert verdicts(story, **test, lock={"ends_with": "connection"}) == (kept, False)
    for ends_with in ("lease", "close"):
        assert verdicts(story, **test, lock={"ends_with": ends_with}) == (False, False)


def test_a_server_that_went_before_the_acquire_took_nothing_of_it():
    story = Story()
    story.fault("kill", 100, 150, ["s1"])
    story.grant(1, "h1", asked=200, at=250, until=1000)
    story.grant(2, "h2", at=400, until=1400)
    test = {"servers": ["s1"], "lock": {"ends_with": "connection"}}
    assert verdicts(story, **test) == (False, False)


def test_the_kill_of_a_server_ends_no_hold():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.fault("kill", 500, 600, ["redis-1"], pid=1)
    assert only(story).strict_end == FOREVER


def test_a_process_ends_with_its_first_op_of_unknown_outcome():
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.write(1, 100, "v", 0, done=300, type="info")
    hold = only(story)
    assert (hold.strict_end, hold.ended_by) == (300 * MS, "gone")


def test_the_bounds_of_an_end_may_come_from_two_events():
    """Its client may have closed in the write, and reported the loss before that ended."""
    story = Story()
    story.grant(1, "h", at=0, until=1000)
    story.write(1, 100, "v", 0, done=200, type="info")
    story.op(150, 1, "info", "lost", {"lock": "orders", "hold": "h"})
    hold = only(story, lock={"ends_with": "close"})
    assert (hold.strict_end, hold.gone_by, hold.ended_by) == (100 * MS, 150 * MS, "gone")


def test_a_hold_that_was_lost_before_its_grant_arrived_was_never_on():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=200)
    story.grant(2, "h2", asked=50, at=100, until=1100)
    story.op(90, 2, "info", "lost", {"lock": "orders", "hold": "h2"})
    assert verdicts(story) == (True, True)


@pytest.mark.parametrize("asked", [0, 100])
def test_a_grant_that_arrives_late_behind_a_cut_was_never_believed(asked):
    """Its connection was lost while it waited, so PostgreSQL granted the lock to another."""
    story = Story()
    links = {"links": [["client-1", "s1"]]}
    story.fault("partition", 100, 2400, ["client-1"], arguments=links)
    story.grant(2, "b", at=2000, until=None, asked=50)
    story.grant(1, "a", at=2500, until=None, asked=asked)
    story.release(2, "b", at=2600)
    test = {"servers": ["s1"], "lock": {"ends_with": "connection"}}
    assert verdicts(story, **test) == (True, False)
    assert verdicts(story, servers=["s1"], lock={"ends_with": "close"}) == (False, False)


def test_a_cut_that_was_on_when_it_asked_did_not_prevent_its_grant():
    story = Story()
    links = {"links": [["client-1", "s1"]]}
    story.fault("partition", 0, 900, ["client-1"], arguments=links)
    story.grant(1, "a", asked=100, at=200, until=1000)
    story.grant(2, "b", at=400, until=1400)
    test = {"servers": ["s1"], "lock": {"ends_with": "connection"}}
    assert verdicts(story, **test) == (False, False)


def test_a_cut_that_was_healed_before_the_acquire_ends_nothing():
    story = Story()
    links = {"links": [["client-1", "s1"]]}
    story.fault("partition", 0, 50, ["client-1"], arguments=links)
    story.grant(1, "a", at=100, until=1000, asked=60)
    story.grant(2, "b", at=200, until=1000)
    test = {"servers": ["s1"], "lock": {"ends_with": "connection"}}
    assert verdicts(story, **test) == (False, False)


@pytest.mark.parametrize(
    ("ends_with", "until"), [("lease", 1000), ("close", 1000), ("connection", 200)]
)
def test_a_connection_may_be_closed_once_its_holder_learned_that_the_lock_is_lost(ends_with, until):
    """No close is recorded. A session's lease continues."""
    story = Story()
    story.grant(1, "a", at=0, until=1000)
    story.op(200, 1, "info", "lost", {"lock": "orders", "hold": "a"})
    may_end = only(story, lock={"ends_with": ends_with}).may_end
    assert min(may_end, 1000 * MS) == until * MS
