"""A process that ends another's hold is named; nobody is blamed for what the service did."""

from __future__ import annotations

import pytest

from fencepost.checker.ownership import ownership
from histories import MS, Story

CLOCKS = {"clocks": {f"client-{n}": {"bound_ns": 4 * MS} for n in (1, 2, 3)}}


@pytest.fixture
def story():
    return Story()


def verdict(story, **test):
    return ownership(story.history(), test)


def lapsed_then_granted(story, granted_at=1500):
    """1 let its lease run out; 2 has been granted the lock since."""
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=granted_at, until=granted_at + 1000)


def test_a_release_of_another_process_hold_is_theft(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(2, "h1", at=100)
    found = verdict(story)
    assert found.valid is False
    assert found.evidence == [
        {
            "what": (
                "process 2 released hold h1 of client-1 (process 1) at 0.100 s and was answered "
                "ok. No fault was on at that time."
            ),
            "time_ns": 100 * MS,
            "lock": "orders",
            "holds": ["h1"],
            "ops": [2, 3],
        }
    ]


def test_a_late_release_after_such_a_theft_is_one_of_its_own(story):
    lapsed_then_granted(story)
    story.release(3, "h1", at=1550)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    assert [row["holds"] for row in verdict(story).evidence] == [["h1"], ["h1", "h2"]]


def test_such_a_theft_is_counted_once_also_where_its_victim_finds_out(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(2, "h1", at=100)
    story.extend(1, "h1", at=200, until=None, type="fail")
    story.grant(3, "h3", at=300, until=1300)
    story.release(2, "h1", at=350)
    story.extend(3, "h3", at=400, until=None, type="fail")
    found = verdict(story)
    assert len(found.evidence) == 2
    assert found.summary == (
        "2 of 2 releases ended the hold of another process. Not tested: a late release (none was "
        "sent after its own hold was over)."
    )
    assert found.details["uncertain"] == 0


def test_an_extension_of_another_process_hold_ends_nothing(story):
    story.grant(1, "h1", at=0, until=1000)
    story.extend(2, "h1", at=100, until=1100)
    story.release(1, "h1", at=200)
    assert verdict(story).valid is True


def test_a_release_of_another_process_hold_that_is_refused_is_not(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(2, "h1", at=100, type="fail")
    story.release(1, "h1", at=200)
    assert verdict(story).valid is True


def test_a_late_release_that_lets_a_third_in_is_theft(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    found = verdict(story)
    assert found.valid is False
    assert found.evidence == [
        {
            "what": (
                "client-1 (process 1) released its hold h1 at 1.600 s and was answered ok, though "
                "client-2 (process 2) had hold h2 since 1.500 s; that was then gone before its "
                "time: client-3 (process 3) was granted hold h3. No fault was on at that time."
            ),
            "time_ns": 1600 * MS,
            "lock": "orders",
            "holds": ["h1", "h2"],
            "ops": [4, 5],
        }
    ]


@pytest.mark.parametrize(("type", "valid"), [("ok", False), ("info", "unknown")])
def test_of_two_releases_that_may_have_ended_a_hold_the_first_is_named(story, type, valid):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(3, "h3", at=1100, until=1400)
    story.grant(2, "h2", at=1500, until=2500)
    story.release(1, "h1", at=1550, type=type)
    story.release(3, "h3", at=1560, type=type)
    story.grant(4, "h4", at=1700, until=2700)
    found = verdict(story)
    assert found.valid == valid
    assert [row["holds"] for row in found.evidence] == [["h1", "h2"]]


def test_a_late_release_after_which_the_holder_s_own_extend_is_refused_is_theft(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=None, type="fail")
    found = verdict(story)
    assert found.valid is False
    assert "its own extend was refused" in found.evidence[0]["what"]


def test_a_late_release_after_which_the_holder_s_own_release_is_refused_is_theft(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.release(2, "h2", at=1700, type="fail")
    assert verdict(story).valid is False


def test_a_release_sent_late_and_long_under_way_is_theft_where_it_arrived_after_the_grant(story):
    """Its lease had run out before the other even asked: it had nothing left to release."""
    lapsed_then_granted(story)
    story.release(1, "h1", at=1400, done=1600)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid is False


def test_a_late_release_that_is_refused_is_nobody_s_fault(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600, type="fail")
    story.grant(3, "h3", at=1700, until=2700)
    story.release(3, "h3", at=1800)
    assert verdict(story).valid is True


def test_a_late_release_after_which_the_other_still_holds_the_lock_is_no_theft(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=2700)
    story.release(2, "h2", at=1800)
    story.grant(3, "h3", at=1900, until=2900)
    assert verdict(story).valid is True


def test_a_double_grant_by_the_service_is_not_blamed_on_the_first_holder_s_release(story):
    """1 releases what it still held; that 2 was granted it as well is the service's doing."""
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=500, until=1500)
    story.release(1, "h1", at=600)
    story.grant(3, "h3", at=700, until=1700)
    assert verdict(story).valid is True


def test_a_third_grant_before_the_late_release_is_the_service_s_doing(story):
    lapsed_then_granted(story)
    story.grant(3, "h3", at=1550, until=2550)
    story.release(1, "h1", at=1600)
    assert verdict(story).valid is True


def test_a_right_release_whose_answer_came_late_is_not_blamed(story):
    """Sent in time, it let 2 in; its answer arrived when 2 had the lock, which 2 then lost."""
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=500, done=800)
    story.grant(2, "h2", asked=550, at=600, until=1600)
    story.extend(2, "h2", at=900, until=None, type="fail")
    assert verdict(story).valid is True


def test_a_hold_that_its_holder_gave_up_is_not_stolen_when_it_asks_for_it_again(story):
    """2 released, and is refused later, as it must be: its own release ended its hold."""
    lapsed_then_granted(story)
    story.release(2, "h2", at=1550)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is True


def test_another_lock_s_holder_is_not_the_victim(story):
    story.grant(1, "h1", at=0, until=1000, lock="a")
    story.grant(2, "h2", at=1500, until=2500, lock="b")
    story.release(1, "h1", at=1600, lock="a")
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is True


def test_a_second_release_of_one_hold_is_theft_also_while_its_first_lease_would_still_run(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100)
    story.grant(2, "h2", at=200, until=1200)
    story.release(1, "h1", at=300)
    story.grant(3, "h3", at=400, until=1400)
    found = verdict(story)
    assert found.valid is False
    assert found.evidence[0]["ops"] == [6, 7]


def test_a_first_release_that_was_refused_ended_the_hold_unless_the_test_says_otherwise(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, type="fail")
    story.grant(2, "h2", at=200, until=1200)
    story.release(1, "h1", at=300)
    story.grant(3, "h3", at=400, until=1400)
    assert verdict(story).valid is False
    assert verdict(story, failed_release="nothing").valid is True


def test_a_release_by_one_who_was_told_that_its_hold_is_lost_is_theft(story):
    story.grant(1, "h1", at=0, until=1000)
    story.op(100, 1, "info", "lost", {"lock": "orders", "hold": "h1"}, ["lost", "-"])
    story.grant(2, "h2", at=200, until=1200)
    story.release(1, "h1", at=300)
    story.grant(3, "h3", at=400, until=1400)
    assert verdict(story).valid is False


def test_a_lease_is_over_at_its_deadline(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", asked=990, at=1000, until=2000)
    story.release(1, "h1", at=1000, done=1001)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid is False


def test_a_first_release_of_unknown_outcome_leaves_it_open_whether_a_second_one_was_late(story):
    """A history may go on with the same process after that."""
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, done=150, type="info")
    story.grant(2, "h2", at=200, until=1200)
    story.release(1, "h1", at=300)
    story.extend(2, "h2", at=400, until=None, type="fail")
    found = verdict(story)
    assert found.valid == "unknown"
    assert "at 0.300 s may have ended it" in found.evidence[0]["what"]


@pytest.mark.parametrize("hold", [None, "h9", "h2"])
def test_a_loss_of_another_hold_does_not_end_this_one(story, hold):
    """Null: the session was lost with which it waits for a grant."""
    story.grant(1, "h1", at=0, until=1000)
    story.op(100, 1, "info", "lost", {"lock": "orders", "hold": hold}, ["lost", "-"])
    story.grant(2, "h2", at=200, until=1200)
    story.release(1, "h1", at=300)
    story.grant(3, "h3", at=400, until=1400)
    assert verdict(story).valid is True


def test_a_release_checked_in_time_and_carried_out_when_another_has_the_lock_is_theft(story):
    """Get, a pause past the lease, then delete: the release began while its own hold was on."""
    story.grant(1, "h1", at=0, until=1000)
    story.fault("pause", 20, 1100, ["client-1"])
    story.grant(2, "h2", at=1050, until=2050)
    story.release(1, "h1", at=10, done=1100)
    story.grant(3, "h3", at=1110, until=2110)
    assert verdict(story).valid is False


def test_of_a_crossing_release_it_is_uncertain_what_it_ended_if_the_other_asked_in_its_lease(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=900, done=1100)
    story.grant(2, "h2", asked=990, at=1050, until=2050)
    story.extend(2, "h2", at=1200, until=None, type="fail")
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.evidence == [
        {
            "what": (
                "client-2 (process 2) had hold h2 since 1.050 s, and it was gone before its time: "
                "its own extend was refused. The release of hold h1 by process 1 at 0.900 s may "
                "have ended it, but that release may have come while its own hold was on, or "
                "before the other was granted. No fault was on at that time."
            ),
            "time_ns": 1200 * MS,
            "lock": "orders",
            "holds": ["h1", "h2"],
            "ops": [2, 7],
        }
    ]
    untested = "a late release (none was sent after its own hold was over)"
    assert found.summary == (
        "It cannot be told whether releases ended 1 hold of other processes, gone before their "
        f"time. Not tested: {untested}."
    )
    assert found.details == {"releases": 1, "uncertain": 1, "untested": [untested]}


def test_of_a_release_answered_before_the_other_s_grant_it_is_uncertain_what_it_ended(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=1200)
    story.grant(2, "h2", asked=1100, at=1300, until=2300)
    story.extend(2, "h2", at=1400, until=None, type="fail")
    assert verdict(story).valid == "unknown"


def test_a_release_answered_before_the_other_asked_ended_nothing_of_it(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=1200)
    story.grant(2, "h2", at=1300, until=2300)
    story.extend(2, "h2", at=1400, until=None, type="fail")
    assert verdict(story).valid is True


def test_a_release_sent_after_the_loss_did_not_cause_it(story):
    lapsed_then_granted(story)
    story.extend(2, "h2", at=1600, until=None, type="fail")
    story.release(1, "h1", at=1700)
    assert verdict(story).valid is True


def test_of_a_hold_that_was_granted_twice_it_is_uncertain_whether_a_late_release_ended_it(story):
    """2 had been granted it in the lease of 1: it may have lost it as it had got it."""
    lapsed_then_granted(story, granted_at=500)
    story.release(1, "h1", at=1200)
    story.extend(2, "h2", at=1300, until=None, type="fail")
    assert verdict(story).valid == "unknown"


@pytest.mark.parametrize("family", ["failover", "kill", "power", "clock", "memory", "quake"])
def test_where_a_server_may_have_forgotten_the_hold_it_cannot_be_told(story, family):
    """Of a family that nobody knows (quake) as well."""
    lapsed_then_granted(story)
    story.fault(family, 1550, 1580, ["redis-1"])
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    found = verdict(story)
    assert found.valid == "unknown"
    words = f"but a server may have forgotten it by {family} of redis-1 (from 1.550 s)."
    assert words in found.evidence[0]["what"]


@pytest.mark.parametrize(
    ("start", "end", "healed", "valid"),
    [
        (1400, 1499, True, False),
        (1400, 1500, True, "unknown"),
        (1400, 1499, False, "unknown"),
        (1400, None, False, "unknown"),
        (1700, 1800, True, "unknown"),
        (1701, 1800, True, False),
    ],
)
def test_a_server_may_forget_from_the_acquire_of_a_hold_to_its_loss(
    story, start, end, healed, valid
):
    lapsed_then_granted(story)
    story.fault("kill", start, end, ["redis-1"], healed=healed)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid == valid


@pytest.mark.parametrize(("end", "valid"), [(1495, False), (1496, "unknown")])
def test_a_fault_was_over_before_an_acquire_only_beyond_the_bound_of_its_clock(story, end, valid):
    lapsed_then_granted(story)
    story.fault("kill", 1400, end, ["redis-1"])
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story, **CLOCKS).valid == valid


@pytest.mark.parametrize(("start", "valid"), [(1705, False), (1704, "unknown")])
def test_a_fault_began_after_a_loss_only_beyond_the_bound_of_its_clock(story, start, valid):
    lapsed_then_granted(story)
    story.fault("kill", start, 1800, ["redis-1"])
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story, **CLOCKS).valid == valid


def test_a_fault_that_names_no_node_is_one_of_the_servers(story):
    lapsed_then_granted(story)
    story.fault("failover", 1550, 1580, [], name="failover")
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid == "unknown"


@pytest.mark.parametrize(
    ("family", "target", "test"),
    [
        ("pause", "redis-1", {}),
        ("kill", "client-4", {"servers": ["redis-1"]}),
        ("kill", "client-1", {}),
        ("kill", "storage", {"servers": ["redis-1"]}),
    ],
)
def test_a_fault_by_which_no_server_of_the_lock_forgets_excuses_nobody(story, family, target, test):
    lapsed_then_granted(story)
    story.fault(family, 1550, 1580, [target])
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story, **test).valid is False


def test_what_a_release_of_unknown_outcome_did_cannot_be_told(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1550, done=1560, type="info")
    story.grant(3, "h3", at=1700, until=2700)
    found = verdict(story)
    assert found.valid == "unknown"
    assert "but the outcome of that release is not known." in found.evidence[0]["what"]


def test_a_release_of_unknown_outcome_may_arrive_long_after_its_end(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=500, done=600, type="info")
    lapsed = {"asked": 1490, "at": 1500, "until": 2500}
    story.grant(2, "h2", **lapsed)
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid == "unknown"


def test_a_release_of_unknown_outcome_that_let_the_other_in_is_right(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=500, done=600, type="info")
    story.grant(2, "h2", at=550, until=1550)
    story.extend(2, "h2", at=900, until=None, type="fail")
    story.release(3, "h9", at=950)
    story.grant(3, "h3", at=2000, until=3000)
    story.release(3, "h3", at=2100)
    assert verdict(story).valid is True


def test_a_release_of_another_process_hold_whose_outcome_is_unknown_cannot_be_told(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(2, "h1", at=100, done=200, type="info")
    story.grant(4, "h4", at=1500, until=2500)
    story.extend(4, "h4", at=1700, until=None, type="fail")
    found = verdict(story)
    assert found.valid == "unknown"
    assert [row["holds"] for row in found.evidence] == [["h1", "h4"]]


def test_a_release_of_unknown_outcome_sent_in_the_instant_of_the_loss_may_have_caused_it(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1700, done=1710, type="info")
    story.grant(3, "h3", at=1700, until=2700)
    assert verdict(story).valid == "unknown"
    assert len(verdict(story).evidence) == 1


def test_a_release_under_way_when_its_holder_is_told_of_the_loss_may_have_caused_that(story):
    """So it may have ended its own hold only: what came later is not certain to be its doing."""
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, done=400)
    story.op(150, 1, "info", "lost", {"lock": "orders", "hold": "h1"}, ["lost", "-"])
    story.grant(2, "h2", asked=160, at=200, until=1200)
    story.extend(2, "h2", at=500, until=None, type="fail")
    assert verdict(story).valid == "unknown"
    assert len(verdict(story).evidence) == 1


def test_a_release_in_the_instant_of_an_extension_is_of_the_hold_as_extended(story):
    lapsed_then_granted(story)
    story.extend(1, "h1", at=1700, until=2700)
    story.release(1, "h1", at=1700)
    story.grant(3, "h3", at=1800, until=2800)
    assert verdict(story).valid is True


def test_a_release_that_names_a_hold_before_its_grant_steals_nothing(story):
    story.release(1, "h1", at=0)
    story.grant(1, "h1", at=10, until=1000)
    assert verdict(story).valid is True


def test_a_hold_that_ended_with_its_client_was_stolen_by_nobody(story):
    """The client of 2 closes its session, and the service gives the lock on at once."""
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.call(2, "close", 1650, 1660, {})
    story.grant(3, "h3", at=1700, until=2700)
    for kind in ("close", "connection"):
        assert verdict(story, lock={"ends_with": kind}).valid is True


def test_a_refusal_after_the_service_may_have_ended_the_hold_proves_nothing(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.fault("partition", 1650, 1800, ["client-2"], arguments={"links": [["client-2", "s1"]]})
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story, lock={"ends_with": "lease"}).valid is False
    assert verdict(story, lock={"ends_with": "connection"}).valid is True


def test_a_grant_after_the_lease_was_over_proves_no_loss(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=2500, until=3500)
    assert verdict(story).valid is True


@pytest.mark.parametrize("done", [2499, 2500])
def test_a_refusal_proves_a_loss_only_before_the_lease_is_over(story, done):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    asked, error = {"lock": "orders", "hold": "h2"}, ["not-held", "it is gone"]
    story.call(2, "extend", 2400, done, asked, type="fail", error=error)
    assert verdict(story).valid is (done == 2500)


@pytest.mark.parametrize(
    ("type", "error"), [("fail", ["no-quorum", "-"]), ("fail", None), ("info", ["not-held", "-"])]
)
def test_what_does_not_say_that_the_hold_was_gone_proves_no_loss(story, type, error):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    asked = {"lock": "orders", "hold": "h2"}
    story.call(2, "extend", 1700, 1700, asked, type=type, error=error)
    assert verdict(story).valid is True


def test_a_refusal_by_a_client_that_has_been_told_of_its_loss_proves_nothing(story):
    """A library refuses so by itself; why its session was lost, nobody has asked."""
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.op(1650, 2, "info", "lost", {"lock": "orders", "hold": "h2"}, ["lost", "-"])
    story.release(2, "h2", at=1640, done=1700, type="fail")
    assert verdict(story).valid is True


def test_a_refusal_after_the_holder_closed_its_client_proves_nothing(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.call(2, "close", 1650, 1660, {})
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is True


def test_the_grants_of_readers_say_nothing_about_a_reader_s_hold(story):
    story.grant(1, "h1", at=0, until=1000, shared=True)
    story.grant(2, "h2", at=1500, until=2500, shared=True)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=1700, until=2700, shared=True)
    assert verdict(story).valid is True
    story.grant(4, "h4", at=1800, until=2800)
    found = verdict(story)
    assert found.valid is False
    assert [row["holds"] for row in found.evidence] == [["h1", "h2"]]
    assert "client-4 (process 4) was granted hold h4" in found.evidence[0]["what"]


def test_a_reader_s_late_release_is_theft_also_of_a_hold_that_began_beside_its_own(story):
    story.grant(1, "h1", at=0, until=1000, shared=True)
    story.grant(2, "h2", at=500, until=2500, shared=True)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is False


@pytest.mark.parametrize(("token", "valid"), [(None, True), (2, True), (4, False)])
def test_a_grant_that_may_have_come_before_proves_no_loss(story, token, valid):
    """The lease of 3 had run out when 2 was granted the lock: only its answer came late."""
    story.grant(1, "h1", at=0, until=400, token=1)
    story.grant(2, "h2", at=1500, until=2500, token=3)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", asked=450, at=1700, until=1450, token=token)
    assert verdict(story).valid is valid


def test_a_grant_whose_lease_ran_when_the_other_was_granted_proves_that_one_of_both_was_lost(
    story,
):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", asked=1400, at=1700, until=2400)
    assert verdict(story).valid is False


@pytest.mark.parametrize(("until", "valid"), [(1508, True), (1509, False)])
def test_such_a_lease_ran_then_only_beyond_the_bounds_of_both_clocks(story, until, valid):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", asked=1400, at=1700, until=until)
    assert verdict(story, **CLOCKS).valid is valid


def test_tokens_that_fell_within_the_bounds_of_clocks_still_tell_the_order_of_grants(story):
    story.grant(1, "h1", at=0, until=400, token=1)
    story.grant(3, "h0", at=5, until=300, token=0)
    story.grant(2, "h2", at=1500, until=2500, token=3)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", asked=450, at=1700, until=1450, token=4)
    assert verdict(story).valid is True
    assert verdict(story, **CLOCKS).valid is False


@pytest.mark.parametrize("holders", [(False, False), (True, False), (False, True)])
def test_what_was_granted_twice_is_so_too_where_one_of_both_holds_is_shared(story, holders):
    mine, other = holders
    story.grant(1, "h1", at=0, until=1000, shared=mine)
    story.grant(2, "h2", at=500, until=1500, shared=other)
    story.release(1, "h1", at=1200)
    story.extend(2, "h2", at=1300, until=None, type="fail")
    assert verdict(story).valid == "unknown"


def test_a_second_grant_to_the_same_process_proves_no_loss(story):
    """The lock may be reentrant."""
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(2, "h3", at=1700, until=2700)
    assert verdict(story).valid is True


def test_a_grant_while_the_lease_was_over_proves_no_loss_though_it_was_extended_later(story):
    lapsed_then_granted(story)
    story.release(1, "h1", at=1600)
    story.grant(3, "h3", at=2600, until=2700)
    story.extend(2, "h2", at=2800, until=3800)
    assert verdict(story).valid is True
    story.grant(4, "h4", at=2900, until=3900)
    assert verdict(story).valid is False


def test_where_its_own_process_released_another_hold_as_well_it_cannot_be_told(story):
    lapsed_then_granted(story)
    story.grant(2, "h3", at=1520, until=2520)
    story.release(2, "h3", at=1550)
    story.extend(2, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is True
    story.release(1, "h1", at=1600)
    found = verdict(story)
    assert found.valid == "unknown"
    assert "but its own process released hold h3 as well." in found.evidence[0]["what"]


def test_a_process_does_not_steal_from_itself(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(1, "h2", at=1500, until=2500)
    story.release(1, "h1", at=1600)
    story.extend(1, "h2", at=1700, until=None, type="fail")
    assert verdict(story).valid is True


def test_holds_without_names_are_those_of_their_process(story):
    for process, at in ((1, 0), (2, 1500)):
        asked, answered = {"lock": "orders"}, {"deadline": (at + 1000) * MS}
        story.call(process, "acquire", at, at, asked, answered)
    story.call(1, "release", 1600, 1600, {"lock": "orders"})
    error = ["not-held", "it is gone"]
    story.call(2, "release", 1700, 1700, {"lock": "orders"}, type="fail", error=error)
    assert verdict(story).valid is False


def test_a_release_without_a_name_is_not_of_a_hold_that_has_one(story):
    story.grant(1, "h1", at=0, until=1000)
    story.call(1, "release", 1600, 1600, {"lock": "orders"})
    assert verdict(story).details["releases"] == 0


def test_a_lease_that_was_over_before_its_grant_arrived_began_when_it_was_extended(story):
    """3 had the lock between the two, as it had every right to."""
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", asked=1100, at=1500, until=1200)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=2700)
    story.grant(3, "h3", asked=1650, at=1800, until=1900)
    assert verdict(story).valid is True


@pytest.mark.parametrize(
    ("granted", "released", "loss", "valid"),
    [
        (1500, 1509, 1550, False),
        (1500, 1508, 1550, "unknown"),
        (1500, 1541, 1550, False),
        (1500, 1542, 1550, "unknown"),
        (1008, 1100, 1550, False),
        (1007, 1100, 1550, "unknown"),
        (1500, 1555, 1550, "unknown"),
        (1500, 1559, 1550, True),
        (1500, 1600, 2491, False),
        (1500, 1600, 2492, True),
    ],
)
def test_bounds_of_clocks_leave_it_open_who_came_first(story, granted, released, loss, valid):
    lapsed_then_granted(story, granted)
    story.release(1, "h1", at=released)
    story.grant(3, "h3", at=loss, until=5000)
    found = verdict(story, **CLOCKS).valid
    assert (found, type(found)) == (valid, type(valid))


@pytest.mark.parametrize(("granted", "valid"), [(991, True), (992, "unknown"), (994, "unknown")])
def test_a_double_grant_is_in_the_lease_only_within_the_bounds_of_both_clocks(
    story, granted, valid
):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=granted, until=2000)
    story.release(1, "h1", at=996, done=1100)
    story.grant(3, "h3", at=1550, until=5000)
    assert verdict(story, **CLOCKS).valid == valid


@pytest.mark.parametrize(("asked", "valid"), [(1708, True), (1709, False)])
def test_a_grant_was_asked_for_in_a_later_lease_only_beyond_the_bounds(story, asked, valid):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", asked=1100, at=1500, until=1200)
    story.release(1, "h1", at=1600)
    story.extend(2, "h2", at=1700, until=2700)
    story.grant(3, "h3", asked=asked, at=1800, until=1900)
    assert verdict(story, **CLOCKS).valid is valid


def test_what_a_history_could_not_show_is_named(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100)
    found = verdict(story)
    assert found.valid is True
    assert found.summary == (
        "None of 1 release ended another's hold. Not tested: a late release (none was sent after "
        "its own hold was over)."
    )
    story.grant(2, "h2", at=150, until=1150)
    story.release(2, "h2", at=1160, done=1170, type="info")
    assert verdict(story).summary == found.summary
    story.release(1, "h1", at=1180, type="fail")
    assert verdict(story).details == {"releases": 1, "uncertain": 0, "untested": []}


def test_without_a_release_that_was_answered_nothing_was_tested(story):
    story.grant(1, "h1", at=0, until=1000)
    story.release(1, "h1", at=100, type="fail")
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary.startswith("No release was answered ok: nothing was tested. Not tested: ")
    assert (found.evidence, found.details["releases"]) == ([], 0)
