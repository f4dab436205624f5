"""A wait is due once nothing blocks a grant: no lease, no unanswered grant, no fault."""

from __future__ import annotations

import pytest

from tests.checker.liveness_stories import (
    LEASE,
    SERVERS,
    STUCK,
    TTL,
    asks,
    asks_in_vain,
    cut,
    dies_with_the_lock,
    healed_at_5000,
    limits,
    unheard,
    verdict,
)
from tests.histories import MS

IMPAIRING = [
    ("partition", {"links": [["redis-1", "redis-2"]]}),
    ("delay", {"source": "redis-2", "to": "redis-1"}),
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


def dies_and_stays_taken(story):
    """A holder with a lease until 1 s dies at 0.1 s, and no client is granted the lock again."""
    dies_with_the_lock(story)
    asks_in_vain(story, 100, STUCK)


@pytest.mark.parametrize(("family", "arguments"), IMPAIRING, ids=[row[0] for row in IMPAIRING])
def test_a_fault_that_keeps_a_server_from_answering_gives_a_lease_and_the_bound_from_its_end(
    story, family, arguments
):
    dies_and_stays_taken(story)
    story.fault(family, 500, 20_000, ["redis-1"], arguments=arguments)
    assert limits(verdict(story)) == ["23.000"]


@pytest.mark.parametrize("family", ["delay", "partition"])
def test_a_fault_between_a_client_and_its_server_is_in_the_way_of_no_other_client(story, family):
    dies_and_stays_taken(story)
    story.read(3, 300, None, 0)
    arguments = {"source": "client-3", "to": "redis-1", "links": [["client-3", "redis-1"]]}
    story.fault(family, 500, 20_000, ["client-3", "redis-1"], arguments=arguments)
    assert limits(verdict(story)) == ["3.000"]


@pytest.mark.parametrize(
    ("arguments", "limit"), [({"offset_s": -5}, "28.000"), ({"rate": 1.5}, "32.750")]
)
def test_a_clock_that_was_wrong_may_have_prolonged_a_lease_by_as_much(story, arguments, limit):
    dies_and_stays_taken(story)
    story.fault("clock", 500, 20_000, ["redis-1"], arguments=arguments)
    assert limits(verdict(story)) == [limit]


def test_a_clock_of_a_client_that_asks_for_nothing_gives_no_more_time(story):
    dies_and_stays_taken(story)
    story.read(3, 300, None, 0)
    story.fault("clock", 500, 20_000, ["client-3"], arguments={"offset_s": 5})
    assert limits(verdict(story)) == ["3.000"]


def test_pauses_of_a_client_that_asks_for_nothing_give_no_more_time(story):
    dies_and_stays_taken(story)
    story.read(3, 300, None, 0)
    for start in range(500, STUCK, 1000):
        story.fault("pause", start, start + 500, ["client-3"])
    assert limits(verdict(story)) == ["3.000"]


def test_a_client_that_is_paused_while_it_asks_may_have_been_granted_the_lock(story):
    dies_with_the_lock(story)
    asks(story, 150, STUCK, process=3)
    story.fault("pause", 200, STUCK, ["client-3"])
    asks_in_vain(story, 100, STUCK)
    assert verdict(story).valid is True


def test_a_client_asks_for_nothing_while_it_is_paused(story):
    story.grant(1, "h1", at=0, until=500)
    story.release(1, "h1", at=100)
    asks(story, 200, 6000, process=3)
    story.fault("pause", 1000, 5000, ["client-3"])
    story.read(2, 9000, None, 0)
    assert verdict(story).valid is True


def test_a_lease_ends_by_itself_although_its_holder_is_paused(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.fault("pause", 100, STUCK, ["client-1"])
    asks_in_vain(story, 100, STUCK)
    found = verdict(story)
    assert limits(found) == ["3.000"]
    assert found.summary.startswith("After the lease of client-1 (process 1) expired, of hold h1")


def test_a_lease_ends_by_itself_although_its_holder_sleeps_and_releases_late(story):
    story.grant(1, "h1", at=0, until=TTL)
    asks_in_vain(story, 100, 20_000)
    story.release(1, "h1", at=20_000)
    story.grant(2, "h2", at=20_100, until=21_000)
    assert limits(verdict(story)) == ["3.000"]


def test_a_lock_that_nobody_is_granted_after_an_ordinary_release_is_dead(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=100)
    asks_in_vain(story, 200, 3000)
    assert limits(verdict(story)) == ["2.100"]


def test_a_dead_reader_that_keeps_a_writer_out_is_seen_between_other_readers(story):
    shared = {"lock": "orders", "ttl": TTL * MS, "mode": "shared"}
    for process, hold, at in ((1, "r1", 0), (2, "r2", 5000)):
        answer = {"hold": hold, "deadline": (at + 1000) * MS}
        story.call(process, "acquire", at, at, shared, answer)
    story.fault("kill", 100, 200, ["client-1"], processes=[1])
    asks_in_vain(story, 100, 9000)
    assert limits(verdict(story)) == ["3.000", "8.000"]


def test_a_long_lease_that_was_released_prolongs_nothing_later(story):
    story.grant(1, "h1", at=0, until=300_000, ttl=300_000)
    story.release(1, "h1", at=100)
    cut(story, 1000, 5000, *SERVERS)
    unheard(story, 4000)
    asks_in_vain(story, 5000, STUCK)
    assert limits(verdict(story)) == ["8.000"]


def test_faults_that_follow_one_another_give_time_from_the_last_one(story):
    dies_and_stays_taken(story)
    story.fault("power", 500, 2000, ["redis-1"])
    story.fault("disk", 4900, 9000, ["redis-2"])
    assert limits(verdict(story)) == ["11.000"]


@pytest.mark.parametrize(("start", "limit"), [(3000, "22.000"), (3001, "3.000")])
def test_a_fault_that_begins_by_the_limit_gives_more_time_and_a_later_one_does_not(
    story, start, limit
):
    dies_and_stays_taken(story)
    story.fault("power", start, 20_000, SERVERS)
    assert limits(verdict(story))[0] == limit


def test_requests_in_vain_count_only_until_the_next_fault(story):
    dies_with_the_lock(story)
    asks(story, 2900, 6000)
    story.fault("power", 3500, 9000, SERVERS)
    story.grant(2, "h2", asked=9000, at=9010, until=10_000)
    found = verdict(story)
    assert found.valid is True
    assert found.details["untested"] == ["after 1 holder that disappeared", LEASE]


def test_a_fault_that_has_ended_when_a_lease_may_have_restarted_counts(story):
    """Servers that elect another leader restart every lease with its full TTL."""
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
    assert limits(verdict(story)) == ["3.000"]  # client-3 asks for nothing
    asks(story, 450, 19_000, process=3)
    assert limits(verdict(story)) == ["21.000"]


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


def test_an_acquire_of_unknown_outcome_that_began_later_may_have_been_granted(story):
    dies_and_stays_taken(story)
    asks(story, 1050, 1500, process=3, type="info", error=("timeout", "-"))
    assert limits(verdict(story)) == ["4.500"]


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


def test_a_live_holder_without_a_visible_lease_keeps_others_waiting(story):
    story.grant(1, "h1", at=50, until=None)
    cut(story, 100, 1000, "redis-1")
    asks_in_vain(story, 1000, STUCK)
    assert verdict(story).valid is True


def test_a_live_holder_whose_lease_has_expired_does_not(story):
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


def test_a_hold_that_was_given_back_lasts_no_longer_whatever_hinders_its_client_later(story):
    story.grant(1, "h1", at=0, until=None)
    story.fault(
        "partition", 500, None, ["client-1"], arguments={"links": [["client-1", "storage"]]}
    )
    story.release(1, "h1", at=10, done=3000)
    asks(story, 4000, 9000)
    assert verdict(story, servers=SERVERS, lock={"ends_with": "close"}).valid is False


@pytest.mark.parametrize(("servers", "limit"), [(SERVERS[:1], "14.000"), (SERVERS, "114.000")])
def test_a_request_that_failed_began_no_lease_that_a_fault_prolongs(story, servers, limit):
    asks(story, 100, 900, process=3, ttl=100_000 * MS)
    cut(story, 500, 12_000, SERVERS[0])
    asks_in_vain(story, 12_100, 400_000)
    assert limits(verdict(story, servers=servers)) == [limit]


@pytest.mark.parametrize(("kind", "valid"), [("requeued", False), ("expired", True)])
def test_a_client_whose_library_asks_again_by_itself_goes_on_asking(story, kind, valid):
    story.grant(1, "h1", at=0, until=TTL)
    story.release(1, "h1", at=100)
    asks(story, 200, 9000, process=3, error=("timeout", "gave up"))
    story.op(300, 3, "info", "lost", {"lock": "orders", "hold": None}, [kind, "-"])
    assert verdict(story).valid is valid


@pytest.mark.parametrize(
    ("took", "lasts", "limit"),
    [(0, TTL, "8.000"), (800, TTL, "8.000"), (2000, TTL, "8.000"), (100, 500, "7.500")],
)
def test_a_lease_may_begin_as_late_as_its_grant_is_answered(story, took, lasts, limit):
    """Its client counts from the request on, and the service from when it arrived. It has expired
    as much later as the request took, and no later than the client asked for."""
    story.grant(1, "h1", asked=5000 - took, at=5000, until=5000 - took + lasts)
    asks_in_vain(story, 5100, STUCK)
    assert limits(verdict(story)) == [limit]
