"""The lock comes back in time, too late, never, or nobody can tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.checker.history import History
from fencepost.checker.liveness import liveness
from histories import MS, Story

TTL, BOUND = 1000, 2000
LIMIT = TTL + BOUND
SERVERS = [f"redis-{n}" for n in range(1, 6)]


@pytest.fixture
def story():
    return Story()


def verdict(story, **test):
    return liveness(story.history(), {"liveness_bound_s": BOUND / 1000, **test})


def cut(story, start, end, *servers):
    links = [["client-1", server] for server in servers]
    story.fault("partition", start, end, ["client-1", *servers], arguments={"links": links})


def asks_in_vain(story, start, end):
    for at in range(start, end, 100):
        story.denied(7, at, at + 90)


def test_somebody_is_granted_the_lock_from_the_start(story):
    story.grant(1, "h", asked=0, at=100, until=1100)
    found = verdict(story)
    assert found.valid is True
    assert found.summary == "The lock came back every time; the longest wait was 0.100 s."
    assert found.evidence == [
        {
            "what": "From the start: granted after 0.100 s.",
            "time_ns": 0,
            "valid": True,
            "waited_s": 0.1,
            "lock": "orders",
        }
    ]
    assert found.details == {
        "bound_s": 2.0,
        "waits": 1,
        "after_deaths_s": [],
        "fifo": {"waited_long": 0, "overtakings": 0},
        "untested": [],
    }


def test_who_is_granted_the_lock_at_once_waits_for_no_time(story):
    story.grant(1, "h", at=0, until=1000)
    found = verdict(story)
    assert found.summary == "The lock came back every time; the longest wait was 0.000 s."


def test_a_lock_that_is_granted_in_time_after_the_last_heal_is_alive(story):
    cut(story, 0, 5000, *SERVERS)
    asks_in_vain(story, 0, 5100)
    story.grant(1, "h", asked=5000, at=5000 + LIMIT, until=9000)
    assert verdict(story).valid is True


def test_a_lock_that_is_granted_too_late_after_the_last_heal_is_not(story):
    cut(story, 0, 5000, *SERVERS)
    asks_in_vain(story, 0, 8100)
    story.grant(1, "h", asked=5000, at=5000 + LIMIT + 1, until=9900)
    found = verdict(story)
    assert found.valid is False
    assert found.summary == (
        "After the last fault was healed: somebody should have been granted the lock by 8.000 s; "
        "it was granted only after 3.001 s."
    )
    assert found.evidence == [
        {
            "what": found.summary,
            "time_ns": 5000 * MS,
            "valid": False,
            "waited_s": 3.001,
            "lock": "orders",
        }
    ]


def test_a_lock_that_is_never_granted_again_is_dead(story):
    story.grant(1, "h", at=100, until=1100)
    story.release(1, "h", at=200)
    cut(story, 300, 5000, *SERVERS)
    asks_in_vain(story, 300, 8200)
    found = verdict(story)
    assert found.valid is False
    assert "it was granted never" in found.summary


def test_a_history_that_ends_before_the_limit_leaves_it_unknown(story):
    cut(story, 0, 5000, *SERVERS)
    asks_in_vain(story, 0, 7900)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary == (
        "After the last fault was healed: the history ends too soon to tell, before 8.000 s."
    )
    assert [(row["valid"], row["waited_s"]) for row in found.evidence] == [("unknown", None)]


def test_what_was_put_to_the_test_before_does_not_make_up_for_a_history_that_ends_too_soon(story):
    dies_with_the_lock(story)
    story.grant(2, "h2", at=1050, until=2050)
    story.release(2, "h2", at=1060)
    cut(story, 2000, 5000, *SERVERS)
    asks_in_vain(story, 2000, 7900)
    found = verdict(story)
    assert (found.valid, found.details["after_deaths_s"]) == ("unknown", [0.95])


def test_a_lock_that_nobody_asked_for_after_the_heal_is_unknown(story):
    story.grant(1, "h", at=100, until=1100)
    story.release(1, "h", at=200)
    cut(story, 300, 5000, *SERVERS)
    story.read(1, 9000, None, 0)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary == (
        "Nobody asked for the lock for long enough to tell. "
        "Not tested: after the last fault was healed."
    )
    what = "After the last fault was healed: nobody asked for long enough to tell."
    assert [(row["what"], row["valid"]) for row in found.evidence] == [(what, "unknown")]


def test_one_refusal_while_the_old_lease_may_still_run_does_not_prove_a_dead_lock(story):
    cut(story, 0, 5000, *SERVERS)
    story.denied(1, 5000, 5010)
    story.read(1, 9000, None, 0)
    assert verdict(story).valid == "unknown"


def test_a_grant_after_a_long_time_in_which_nobody_asked_is_not_late(story):
    cut(story, 0, 5000, *SERVERS)
    story.denied(1, 5000, 5010)
    story.grant(1, "h", asked=9000, at=9010, until=10000)
    assert verdict(story).valid == "unknown"


def test_an_acquire_that_never_returned_was_asked_all_the_time(story):
    cut(story, 0, 5000, *SERVERS)
    story.denied(1, 5000, None)
    story.read(2, 9000, None, 0)
    assert verdict(story).valid is False


def dies_with_the_lock(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.call(1, "read", 100, None, {"resource": "account"})
    story.killed(1, 200, "read")


def test_after_a_holder_s_death_the_lock_is_granted_when_its_lease_is_over(story):
    dies_with_the_lock(story)
    asks_in_vain(story, 100, 1000)
    story.grant(2, "h2", at=1050.1, until=2050)
    found = verdict(story)
    assert found.valid is True
    assert found.details["after_deaths_s"] == [0.95]
    assert [row["what"] for row in found.evidence] == [
        "From the start: granted after 0.000 s.",
        "After client-1 (process 1) was gone with hold h1 at 0.100 s: granted after 0.950 s.",
    ]


def test_a_lock_that_stays_taken_after_its_holder_s_death_is_dead(story):
    dies_with_the_lock(story)
    asks_in_vain(story, 100, LIMIT + 200)
    found = verdict(story)
    assert found.valid is False
    assert found.summary == (
        "After client-1 (process 1) was gone with hold h1 at 0.100 s: somebody should have been "
        "granted the lock by 3.000 s; it was granted never."
    )


def test_a_lock_without_a_visible_lease_must_come_back_after_its_ttl(story):
    story.grant(1, "h1", at=0, until=None, ttl=TTL)
    story.call(1, "read", 100, None, {"resource": "account"})
    story.killed(1, 200, "read")
    asks_in_vain(story, 100, 100 + LIMIT + 200)
    assert verdict(story).valid is False


def test_where_the_holder_named_no_ttl_the_longest_of_its_lock_counts(story):
    story.call(1, "acquire", 0, 0, {"lock": "orders"}, {"hold": "h1", "deadline": None})
    story.call(1, "read", 100, None, {"resource": "account"})
    story.killed(1, 200, "read")
    asks_in_vain(story, 201, 200 + LIMIT + 200)
    found = verdict(story)
    assert found.valid is False
    assert limits(found) == ["3.200"]


def test_a_death_while_the_servers_are_unreachable_waits_for_them(story):
    dies_with_the_lock(story)
    cut(story, 150, 6000, *SERVERS)
    asks_in_vain(story, 200, 6000)
    story.grant(2, "h2", at=6500, until=7500)
    assert verdict(story).valid is True


def test_a_holder_that_gave_the_lock_up_before_it_died_leaves_nothing_to_wait_for(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=50, done=60)
    story.fault("kill", 200, 300, ["client-1"], processes=[1])
    story.grant(2, "h2", at=400, until=1400)
    assert verdict(story).details["waits"] == 1


@pytest.fixture
def minority_down(story):
    """Two of five servers are away for long, and nobody is granted the lock meanwhile."""
    story.grant(2, "h0", at=10, until=1000)
    story.release(2, "h0", at=20)
    for server in SERVERS[:2]:
        story.fault("kill", 100, 9000, [server])
    asks_in_vain(story, 100, 9000)
    story.grant(3, "h1", at=9100, until=9900)
    return story


def test_a_promise_to_survive_a_minority_is_held_against_the_lock(minority_down):
    found = verdict(minority_down, servers=SERVERS, promises={"minority": True})
    assert found.valid is False
    assert "With redis-1, redis-2 impaired from 0.100 s" in found.summary


def test_a_lock_that_promised_nothing_of_the_kind_is_not_blamed(minority_down):
    assert verdict(minority_down, servers=SERVERS).valid is True


def test_a_majority_that_is_down_breaks_no_promise_about_a_minority(minority_down):
    minority_down.fault("kill", 50, 9050, [SERVERS[2]])
    assert verdict(minority_down, servers=SERVERS, promises={"minority": True}).valid is True


def test_a_lock_that_works_on_without_a_minority_keeps_its_promise(story):
    story.fault("kill", 100, 9000, [SERVERS[0]])
    story.grant(2, "h1", at=500, until=1500)
    story.grant(3, "h2", at=9100, until=9900)
    found = verdict(story, servers=SERVERS, promises={"minority": True})
    assert found.valid is True
    assert found.details["waits"] == 2


def test_a_jumped_clock_keeps_no_server_from_answering(story):
    story.fault("clock", 100, 9000, [SERVERS[0]])
    asks_in_vain(story, 100, 9000)
    story.grant(3, "h1", at=9100, until=9900)
    assert verdict(story, servers=SERVERS, promises={"minority": True}).valid is True


# Whoever asks, and for how long.


def asks(
    story, at, done, process=7, lock="orders", type="fail", error=("not-granted", "no"), **more
):
    asked = {"lock": lock, "ttl": TTL * MS, **more}
    story.call(process, "acquire", at, done, asked, type=type, error=list(error))


def healed_at_5000(story):
    """Due at 6 s, the limit at 8 s."""
    cut(story, 0, 5000, *SERVERS)


def test_who_asks_just_before_the_limit_and_is_granted_just_after_it_proves_nothing(story):
    healed_at_5000(story)
    story.grant(1, "h", asked=7999, at=8001, until=9000)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.details["untested"] == ["after the last fault was healed"]


def test_one_acquire_in_vain_for_longer_than_the_bound_proves_a_dead_lock(story):
    healed_at_5000(story)
    asks(story, 6000, 8001)
    assert verdict(story).valid is False


def test_one_acquire_in_vain_for_the_bound_does_not(story):
    healed_at_5000(story)
    asks(story, 6000, 8000)
    story.read(1, 20_000, None, 0)
    assert verdict(story).valid == "unknown"


def test_what_was_asked_before_the_lock_was_due_does_not_count(story):
    healed_at_5000(story)
    asks(story, 3000, 7900)
    story.read(1, 20_000, None, 0)
    assert verdict(story).valid == "unknown"


def test_asking_for_longer_than_the_bound_after_the_limit_counts_as_well(story):
    healed_at_5000(story)
    asks(story, 10_000, 12_001)
    story.grant(1, "h", asked=14_000, at=14_010, until=15_000)
    found = verdict(story)
    assert found.valid is False
    assert found.details["waits"] == 1


@pytest.mark.parametrize(("pause", "valid"), [(200, False), (201, "unknown")])
def test_who_pauses_for_a_tenth_of_the_bound_asks_on_and_who_pauses_longer_does_not(
    story, pause, valid
):
    healed_at_5000(story)
    asks(story, 6000, 7000)
    asks(story, 7000 + pause, 8300)
    story.read(1, 20_000, None, 0)
    assert verdict(story).valid == valid


@pytest.mark.parametrize(("end", "told"), [(7200, "history ends too soon"), (7201, "Nobody asked")])
def test_who_paused_for_a_tenth_of_the_bound_still_asks_at_the_end(story, end, told):
    healed_at_5000(story)
    asks(story, 6000, 7000)
    story.read(1, end, None, 0)
    found = verdict(story)
    assert found.valid == "unknown"
    assert told in found.summary


def test_several_clients_ask_on_together(story):
    healed_at_5000(story)
    asks(story, 6000, 7100, process=1)
    asks(story, 6500, 6600, process=2)
    asks(story, 7000, 8100, process=3)
    assert verdict(story).valid is False


def test_clients_that_give_up_at_once_count_with_what_they_waited(story):
    healed_at_5000(story)
    for at in range(6000, 8000, 500):
        asks(story, at, at + 5)
    story.read(2, 20_000, None, 0)
    assert verdict(story).valid == "unknown"


def test_a_client_that_is_dead_asks_for_nothing(story):
    healed_at_5000(story)
    asks(story, 6000, None, process=1)
    story.fault("kill", 6100, None, ["client-1"], processes=[1])
    story.read(2, 20_000, None, 0)
    assert verdict(story).valid == "unknown"


def test_an_acquire_of_a_client_that_crashed_was_asked_until_its_last_sign_of_life(story):
    healed_at_5000(story)
    asks(story, 7000, 20_000, type="info", error=("crashed", "-"))
    story.read(2, 30_000, None, 0)
    assert verdict(story).valid == "unknown"


@pytest.mark.parametrize(("again", "valid"), [(8001, False), (8000, "unknown")])
def test_who_died_in_an_acquire_had_asked_until_then(story, again, valid):
    """What comes after it began stands in the way: its client may have been granted the lock."""
    healed_at_5000(story)
    asks(story, 6000, 7900)
    asks(story, again, 9000, type="info", error=("killed", "-"))
    story.read(2, 30_000, None, 0)
    assert verdict(story).valid == valid


# Each lock is judged by itself.


def test_of_two_locks_one_that_is_dead_after_the_heal_breaks_the_promise(story):
    healed_at_5000(story)
    story.grant(1, "h", asked=5000, at=5100, until=6000, lock="orders-1")
    asks(story, 5000, 9000, lock="orders-2")
    found = verdict(story)
    assert found.valid is False
    assert found.evidence[0]["lock"] == "orders-2"


def test_of_two_locks_one_that_nobody_asked_for_after_the_heal_is_named(story):
    story.grant(1, "h1", at=10, until=1000, lock="orders-2")
    story.release(1, "h1", at=20, lock="orders-2")
    cut(story, 100, 5000, *SERVERS)
    story.grant(1, "h2", asked=5000, at=5100, until=6000, lock="orders-1")
    found = verdict(story)
    assert found.valid is True
    assert found.summary.endswith(" Not tested: after the last fault was healed (orders-2).")


def test_a_grant_of_another_lock_does_not_bring_a_dead_holder_s_lock_back(story):
    dies_with_the_lock(story)
    story.grant(2, "h2", at=1050, until=2050, lock="other")
    asks_in_vain(story, 100, LIMIT + 200)
    assert verdict(story).valid is False


def test_the_lease_of_another_lock_gives_no_more_time(story):
    healed_at_5000(story)
    asks(story, 5000, 8001)
    story.call(8, "acquire", 5000, 5010, {"lock": "other", "ttl": 60_000 * MS}, type="fail")
    assert verdict(story).valid is False


# What stands in the way.

STUCK = 40_000


def dies_and_stays_taken(story):
    """A holder with a lease until 1 s is gone at 0.1 s, and nobody gets the lock any more."""
    dies_with_the_lock(story)
    asks_in_vain(story, 100, STUCK)


def limits(found):
    """By when the lock had to be back after each holder, in s."""
    return [
        e["what"].split(" by ")[1].split(" s;")[0]
        for e in found.evidence
        if "After cl" in e["what"]
    ]


IMPAIRING = [
    ("partition", {"links": [["redis-1", "redis-2"]]}),
    ("delay", {"source": "client-1", "to": "redis-1"}),
    ("packet", {"kind": "delay"}),
    ("pause", {}),
    ("kill", {}),
    ("power", {}),
    ("failover", {}),
    ("membership", {}),
    ("memory", {"policy": "noeviction"}),
    ("disk", {}),
    ("cpu", {"share": 0.02}),
]


@pytest.mark.parametrize(("family", "arguments"), IMPAIRING, ids=[row[0] for row in IMPAIRING])
def test_a_fault_that_keeps_a_server_from_answering_gives_a_lease_and_the_bound_from_its_end(
    story, family, arguments
):
    dies_and_stays_taken(story)
    story.fault(family, 500, 20_000, ["redis-1"], arguments=arguments)
    assert limits(verdict(story)) == ["23.000"]


def test_a_fault_that_impairs_nobody_gives_no_more_time(story):
    dies_and_stays_taken(story)
    story.fault("clock", 500, 20_000, ["redis-1"], arguments={"offset_s": 5})
    assert limits(verdict(story)) == ["3.000"]


def test_faults_that_follow_one_another_give_time_from_the_last_one(story):
    dies_and_stays_taken(story)
    story.fault("power", 500, 2000, ["redis-1"])
    story.fault("disk", 4900, 9000, ["redis-2"])
    assert limits(verdict(story)) == ["12.000"]


@pytest.mark.parametrize(("start", "limit"), [(3000, "23.000"), (3001, "3.000")])
def test_a_fault_that_begins_by_the_limit_gives_more_time_and_a_later_one_does_not(
    story, start, limit
):
    dies_and_stays_taken(story)
    story.fault("power", start, 20_000, SERVERS)
    assert limits(verdict(story)) == [limit]


def test_in_vain_counts_only_until_the_next_fault(story):
    dies_with_the_lock(story)
    asks(story, 2900, 6000)
    story.fault("power", 3500, 9000, SERVERS)
    story.grant(2, "h2", asked=9000, at=9010, until=10_000)
    found = verdict(story)
    assert found.valid is True
    assert found.details["untested"] == ["after 1 holder that went"]


def test_a_fault_that_is_over_when_a_lease_may_have_begun_anew_counts(story):
    """Servers that elect another leader give every lease its whole time again."""
    story.fault("kill", 100, 900, ["redis-1"])
    story.grant(1, "h1", at=0, until=1000)
    story.call(1, "read", 950, None, {"resource": "account"})
    story.killed(1, 950, "read")
    asks_in_vain(story, 960, STUCK)
    assert limits(verdict(story)) == ["3.900"]


def test_the_kill_of_another_client_gives_no_more_time(story):
    dies_and_stays_taken(story)
    story.read(3, 300, None, 0)
    story.fault("kill", 500, 20_000, ["client-3"], processes=[3])
    assert limits(verdict(story)) == ["3.000"]


def test_the_kill_of_a_client_that_nothing_proves_gives_time_until_it_is_healed(story):
    dies_and_stays_taken(story)
    story.read(3, 300, None, 0)
    story.fault("kill", 500, 20_000, ["client-3"], proved=False, healed=False, processes=[3])
    assert limits(verdict(story)) == ["23.000"]


def test_a_client_that_was_killed_while_it_asked_may_have_been_granted_the_lock(story):
    dies_and_stays_taken(story)
    asks(story, 900, 2500, process=3, type="info", error=("killed", "-"))
    story.fault("kill", 2400, 2500, ["client-3"], processes=[3])
    assert limits(verdict(story)) == ["5.500"]


def test_so_may_one_that_began_to_ask_after_the_holder_was_gone_and_never_returned(story):
    dies_and_stays_taken(story)
    asks(story, 2900, None, process=3)
    story.fault("kill", 3300, 3400, ["client-3"], processes=[3])
    assert limits(verdict(story)) == ["6.300"]


def test_an_acquire_of_unknown_outcome_from_before_may_have_been_granted(story):
    dies_and_stays_taken(story)
    asks(story, 50, 1500, process=3, type="info", error=("timeout", "-"))
    assert limits(verdict(story)) == ["4.500"]


def test_such_an_acquire_that_names_no_lease_may_have_the_longest_of_its_lock(story):
    dies_and_stays_taken(story)
    story.call(3, "acquire", 50, 1500, {"lock": "orders"}, type="info", error=["timeout", "-"])
    assert limits(verdict(story)) == ["4.500"]


def test_an_acquire_of_unknown_outcome_that_began_later_was_asked_in_vain(story):
    dies_with_the_lock(story)
    asks(story, 101, 3500, process=3, type="info", error=("timeout", "-"))
    assert limits(verdict(story)) == ["3.000"]


def test_a_live_holder_that_extends_its_lease_keeps_others_waiting(story):
    story.grant(1, "h1", at=50, until=1050)
    cut(story, 100, 1000, "redis-1")
    for at in range(500, 30_000, 500):
        story.extend(1, "h1", at, at + 1000)
    story.release(1, "h1", at=30_000)
    story.grant(2, "h2", asked=1500, at=30_010, until=31_000)
    found = verdict(story)
    assert found.valid is True
    assert found.details["waits"] == 1


def test_a_live_holder_whose_lease_nobody_can_see_keeps_others_waiting(story):
    story.grant(1, "h1", at=50, until=None)
    cut(story, 100, 1000, "redis-1")
    asks_in_vain(story, 1000, STUCK)
    assert verdict(story).valid == "unknown"


def test_a_live_holder_whose_lease_is_over_does_not(story):
    story.grant(1, "h1", at=50, until=7000)
    healed_at_5000(story)
    asks_in_vain(story, 5000, STUCK)
    found = verdict(story)
    assert found.valid is False
    assert "by 9.000 s" in found.summary


@pytest.mark.parametrize(
    ("type", "limit"), [("ok", "8.000"), ("info", "11.000"), ("fail", "11.000")]
)
def test_a_release_that_was_answered_ok_gives_the_lock_back_and_another_leaves_the_lease(
    story, type, limit
):
    story.grant(1, "h1", at=50, until=9000)
    healed_at_5000(story)
    story.release(1, "h1", 3000, 4000, type=type)
    asks_in_vain(story, 5000, STUCK)
    assert f"by {limit} s" in verdict(story).summary


def test_a_hold_without_a_name_is_given_back_by_its_process_next_release(story):
    story.call(1, "acquire", 50, 50, {"lock": "orders", "ttl": TTL * MS}, {"deadline": 60_000 * MS})
    healed_at_5000(story)
    story.call(1, "release", 3000, 4000, {"lock": "orders"})
    asks_in_vain(story, 5000, STUCK)
    assert "by 8.000 s" in verdict(story).summary


def test_an_extension_of_unknown_outcome_may_have_made_the_lease_longer(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.call(
        1,
        "extend",
        100,
        900,
        {"lock": "orders", "hold": "h1", "ttl": 5000 * MS},
        type="info",
        error=["timeout", "-"],
    )
    asks_in_vain(story, 1000, STUCK)
    assert limits(verdict(story)) == ["7.900"]


def test_a_renewal_may_have_been_under_way_when_its_holder_died(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.op(400, 1, "info", "renewed", {"lock": "orders", "hold": "h1", "deadline": 1400 * MS})
    story.fault("kill", 900, 1000, ["client-1"], processes=[1])
    asks_in_vain(story, 1000, STUCK)
    assert limits(verdict(story)) == ["3.900"]


def test_another_shared_holder_that_lives_keeps_others_waiting(story):
    shared = {"lock": "orders", "ttl": TTL * MS, "mode": "shared"}
    for process, hold, until in ((1, "h1", 1000), (2, "h2", 9000)):
        story.call(process, "acquire", 0, 10, shared, {"hold": hold, "deadline": until * MS})
    story.call(1, "read", 100, None, {"resource": "account"})
    story.killed(1, 200, "read")
    asks_in_vain(story, 100, STUCK)
    assert limits(verdict(story)) == ["11.000"]


def test_clock_bounds_between_hosts_make_the_bound_longer(story):
    dies_and_stays_taken(story)
    clocks = {"client-1": {"bound_ns": 4 * MS}, "client-7": {"bound_ns": 1 * MS}}
    assert limits(verdict(story, clocks=clocks)) == ["3.008"]


# Whose end leaves a lock to wait for.


def test_a_killed_holder_lived_until_the_kill(story):
    story.grant(1, "h1", at=10, until=None)
    asks(story, 500, 19_000)
    story.fault("kill", 20_000, 21_000, ["client-1"], processes=[1])
    story.grant(2, "h2", asked=19_500, at=20_100, until=None)
    story.release(2, "h2", at=20_500)
    story.read(3, 40_000, None, 0)
    found = verdict(story)
    assert found.valid is True
    assert found.details["after_deaths_s"] == [0.1]
    assert found.details["untested"] == ["after the last fault was healed"]


def test_a_kill_of_a_client_without_an_end_is_over_when_it_has_happened(story):
    story.grant(1, "h1", at=10, until=None)
    story.fault("kill", 2000, None, ["client-1"], processes=[1])
    asks_in_vain(story, 100, STUCK)
    found = verdict(story)
    assert found.valid is False
    assert limits(found) == ["5.000"]


@pytest.mark.parametrize("ends_with", ["lease", "close", "connection"])
def test_the_lock_of_a_client_that_closes_while_it_holds_must_come_back(story, ends_with):
    story.grant(1, "h1", at=0, until=5000)
    story.call(1, "close", 100, 200, {})
    asks_in_vain(story, 300, STUCK)
    found = verdict(story, lock={"ends_with": ends_with})
    assert (found.valid, limits(found)) == (False, ["7.000"])


def test_the_lock_of_a_client_whose_op_ended_info_must_come_back(story):
    story.grant(1, "h1", at=0, until=5000)
    story.write(1, 100, "a", 0, done=200, type="info")
    asks_in_vain(story, 300, STUCK)
    assert limits(verdict(story)) == ["7.000"]


def test_a_holder_whose_lease_was_over_before_it_died_leaves_nothing_to_wait_for(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.fault("kill", TTL, 2000, ["client-1"], processes=[1])
    story.grant(2, "h2", at=2100, until=3100)
    assert verdict(story).details["waits"] == 1


def test_a_holder_s_death_that_nobody_asked_after_is_named_and_not_held_against_the_lock(story):
    story.grant(2, "h0", at=0, until=1000)
    story.release(2, "h0", at=10)
    story.grant(1, "h1", at=20, until=1020)
    story.call(1, "read", 100, None, {"resource": "account"})
    story.killed(1, 200, "read")
    story.read(2, 9000, None, 0)
    found = verdict(story)
    assert found.valid is True
    assert found.details["untested"] == ["after 1 holder that went"]


# Faults that were never healed, and faults that nobody knows.


def test_a_fault_that_was_never_healed_leaves_the_last_heal_untested(story):
    story.fault("power", 100, None, SERVERS)
    story.grant(1, "h", at=10, until=20_000)
    asks_in_vain(story, 30_000, STUCK)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.details["untested"] == ["after the last fault was healed"]


def test_after_the_last_fault_means_the_one_that_ends_last(story):
    cut(story, 0, 5000, *SERVERS)
    story.fault("clock", 100, 7000, ["redis-1"])
    asks_in_vain(story, 5000, STUCK)
    assert "by 10.000 s" in verdict(story).summary


def test_a_family_of_which_nothing_is_known_makes_it_unknown_and_never_false(story):
    story.fault("gremlin", 0, 5000, ["redis-1"])
    asks_in_vain(story, 0, STUCK)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary.startswith("It is not known which nodes gremlin keeps from answering.")


def test_it_does_so_when_the_lock_came_back_as_well(story):
    story.fault("gremlin", 0, 5000, ["redis-1"])
    story.grant(1, "h", at=5100, until=6000)
    assert verdict(story).valid == "unknown"


def test_a_fault_that_says_what_it_impairs_is_known(story):
    story.fault("gremlin", 0, 5000, ["redis-1"])
    asks_in_vain(story, 0, STUCK)
    known = [
        replace(op, value=op.value | {"impairs": ["redis-1"]}) if op.process == "nemesis" else op
        for op in story.history()
    ]
    found = liveness(History(known), {"liveness_bound_s": BOUND / 1000})
    assert found.valid is False


# With a minority impaired.

MINORITY = {"servers": SERVERS, "promises": {"minority": True}}


def grants_before_and_after(story):
    story.grant(2, "h0", at=10, until=50)
    story.release(2, "h0", at=20)
    asks_in_vain(story, 100, 9000)
    story.grant(3, "h1", at=9100, until=9900)


@pytest.mark.parametrize(
    ("servers", "down", "valid"),
    [(3, 1, False), (4, 1, False), (4, 2, True), (5, 2, False), (5, 3, True)],
)
def test_a_minority_is_fewer_than_half_of_the_servers(story, servers, down, valid):
    grants_before_and_after(story)
    story.fault("kill", 100, 9000, SERVERS[:down])
    promised = MINORITY | {"servers": SERVERS[:servers]}
    assert verdict(story, **promised).valid is valid


def test_servers_that_faults_of_any_family_impair_add_up(story):
    grants_before_and_after(story)
    for server, family in zip(SERVERS, ("kill", "power", "disk"), strict=False):
        story.fault(family, 100, 9000, [server])
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert found.details["untested"] == ["minority"]


def test_a_cut_between_a_minority_and_the_others_impairs_the_minority(story):
    grants_before_and_after(story)
    near, far = SERVERS[:2], [*SERVERS[2:], "client-2", "client-3", "client-7"]
    links = [[one, other] for one in near for other in far]
    story.fault("partition", 100, 9000, [*near, *far], arguments={"links": links})
    assert verdict(story, **MINORITY).valid is False


def test_a_client_that_is_impaired_beside_the_minority_may_be_next_in_the_queue(story):
    grants_before_and_after(story)
    story.fault("kill", 100, 9000, [SERVERS[0]])
    story.fault("pause", 100, 9000, ["client-2"])
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert found.details["untested"] == ["minority"]


def test_with_a_minority_impaired_the_lock_has_a_lease_and_the_bound(story):
    story.fault("kill", 100, 9000, [SERVERS[0]])
    asks_in_vain(story, 100, 9000)
    story.grant(3, "h1", at=9100, until=9900)
    assert "granted the lock by 3.100 s" in verdict(story, **MINORITY).summary


@pytest.mark.parametrize(("end", "untested"), [(100 + LIMIT, []), (99 + LIMIT, ["minority"])])
def test_a_minority_that_is_impaired_for_less_than_a_lease_and_the_bound_tests_nothing(
    story, end, untested
):
    story.fault("kill", 100, end, [SERVERS[0]])
    story.grant(2, "h1", at=500, until=600)
    story.release(2, "h1", at=550)
    story.grant(3, "h2", at=end + 100, until=9900)
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert found.details["untested"] == untested


def test_each_begin_and_end_of_a_fault_gives_the_servers_new_time(story):
    grants_before_and_after(story)
    story.fault("kill", 100, 9000, [SERVERS[0]])
    for start in range(2000, 9000, 2000):
        story.fault("pause", start, start + 100, [SERVERS[1]])
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert found.details["untested"] == ["minority"]


@pytest.mark.parametrize(("at", "told"), [(4000, "only after 3.900 s"), (4001, "never")])
def test_a_grant_after_the_minority_is_back_does_not_count_for_it(story, at, told):
    story.fault("kill", 100, 4000, [SERVERS[0]])
    asks(story, 1000, 3900)
    story.grant(3, "h1", asked=3950, at=at, until=5000)
    found = verdict(story, **MINORITY)
    assert found.valid is False
    assert f"it was granted {told}" in found.summary


def test_a_minority_that_is_back_before_the_lock_was_due_puts_nothing_to_the_test(story):
    story.grant(2, "h0", at=10, until=7000)
    story.fault("kill", 100, 8000, [SERVERS[0]])
    asks(story, 200, 8500)
    story.grant(3, "h1", at=8600, until=9900)
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert found.details["untested"] == ["minority"]


def test_each_lock_must_be_usable_with_a_minority_impaired(story):
    story.fault("kill", 100, 9000, [SERVERS[0]])
    asks(story, 100, 8900, lock="a")
    story.grant(2, "h", at=1000, until=2000, lock="b")
    story.release(2, "h", at=1010, lock="b")
    for process, lock in ((3, "a"), (4, "b")):
        story.grant(process, f"l{lock}", at=9100, until=9900, lock=lock)
    found = verdict(story, **MINORITY)
    assert found.valid is False
    assert [e["lock"] for e in found.evidence] == ["a"]


def test_promises_that_nothing_put_to_the_test_are_named(story):
    story.grant(1, "h", asked=0, at=100, until=1100)
    promises = {"minority": True, "fifo": True, "one_wakeup": True}
    found = verdict(story, servers=SERVERS, promises=promises)
    assert found.valid is True
    assert found.details["untested"] == ["minority", "fifo", "one_wakeup"]
    assert found.summary.endswith(" Not tested: minority, fifo, one_wakeup.")


def test_a_history_in_which_nobody_asks_is_unknown(story):
    clocks = {"client-1": {"bound_ns": 4 * MS}}
    assert verdict(story, clocks=clocks).valid == "unknown"
    story.read(1, 0, None, 0)
    assert verdict(story).valid == "unknown"


def test_holders_that_went_one_after_the_other_are_each_waited_for(story):
    for number in range(300):
        at = number * 100
        story.grant(number, f"h{number}", at=at, until=at + TTL)
        story.write(number, at + 10, f"v{number}", 0, type="info")
    for number in range(10):
        story.fault("power", number * 3000, number * 3000 + 500, SERVERS)
    history = story.history()
    assert liveness(history, MINORITY).valid is True


def refused_after_the_limit(story, *times, **test):
    cut(story, 0, 5000, *SERVERS)
    for number, (at, done) in enumerate(times):
        story.denied(7 + number, 5000 + LIMIT + at, 5000 + LIMIT + done)
    story.read(1, 30_000, None, 0)
    return verdict(story, **test)


def test_a_lock_that_is_refused_twice_to_who_asks_alone_after_the_limit_is_dead(story):
    assert refused_after_the_limit(story, (10, 12), (2000, 2002)).valid is False


def test_the_second_may_be_the_end_of_the_history(story):
    cut(story, 0, 5000, *SERVERS)
    story.denied(7, 8010, 8012)
    story.denied(8, 10_000, 10_002)
    assert verdict(story).valid is False


def test_who_asks_at_the_limit_does_not_ask_after_it(story):
    assert refused_after_the_limit(story, (0, 2), (2000, 2002)).valid == "unknown"


def test_two_who_ask_one_after_the_other_in_one_instant_are_not_alone(story):
    assert refused_after_the_limit(story, (10, 12), (12, 14), (2000, 2002)).valid == "unknown"


@pytest.mark.parametrize(("second", "valid"), [(120, "unknown"), (121, False)])
def test_on_two_hosts_who_asks_is_alone_only_beyond_the_bounds_of_both_clocks(story, second, valid):
    times = ((110, 112), (second, second + 2), (2000, 2002))
    clocks = {f"client-{n}": {"bound_ns": 4 * MS} for n in (7, 8)}
    assert refused_after_the_limit(story, *times, clocks=clocks).valid == valid


def test_who_asks_beside_one_that_has_asked_for_long_is_not_alone(story):
    times = ((10, 1900), (20, 22), (500, 502), (1000, 1002))
    assert refused_after_the_limit(story, *times).valid == "unknown"


def test_one_refusal_after_the_limit_may_be_a_hiccup(story):
    assert refused_after_the_limit(story, (10, 12)).valid == "unknown"


def test_two_who_ask_at_once_may_keep_the_lock_from_one_another(story):
    times = ((10, 12), (11, 13), (2000, 2002), (2001, 2003))
    assert refused_after_the_limit(story, *times).valid == "unknown"


def test_refusals_before_the_limit_do_not_count_for_those_after_it(story):
    assert refused_after_the_limit(story, (-100, -98), (2000, 2002)).valid == "unknown"


def test_a_request_that_may_have_been_granted_unheard_keeps_the_next_from_being_alone(story):
    cut(story, 0, 5000, *SERVERS)
    asked = {"lock": "orders", "ttl": 1000 * 1_000_000}
    for number, at in enumerate((15_000, 15_900, 16_800)):
        story.call(7 + number, "acquire", at, at + 1, asked, {}, "info", ["timeout", "-"])
    story.read(1, 30_000, None, 0)
    assert verdict(story).valid == "unknown"


@pytest.mark.parametrize(("end", "valid"), [(8000, "unknown"), (8001, False)])
def test_a_history_that_ends_in_the_instant_of_the_limit_ends_too_soon(story, end, valid):
    cut(story, 0, 5000, *SERVERS)
    asks_in_vain(story, 0, 7900)
    story.denied(7, 7900, end)
    found = verdict(story)
    assert found.valid == valid
    assert ("the history ends too soon to tell" in found.summary) is (valid == "unknown")
