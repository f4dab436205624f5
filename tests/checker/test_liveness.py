"""Liveness of a whole history: each lock by itself, and which promises no op tested."""

from __future__ import annotations

from tests.checker.liveness_stories import (
    LEASE,
    LIMIT,
    SERVERS,
    asks,
    asks_in_vain,
    cut,
    dies_with_the_lock,
    healed_at_5000,
    verdict,
)
from tests.histories import MS


def test_a_client_is_granted_the_lock_from_the_start(story):
    story.grant(1, "h", asked=0, at=100, until=1100)
    found = verdict(story)
    assert found.valid is True
    assert found.summary == (
        "The lock was granted in time whenever it was free and a client asked for it. "
        "Not tested: the end of a lease."
    )
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
        "served": 1,
        "leases": 0,
        "after_deaths_s": [],
        "fifo": {"waited_long": 0, "overtakings": 0},
        "untested": [LEASE],
    }


def test_a_client_that_is_granted_the_lock_at_once_waits_for_no_time(story):
    story.grant(1, "h", at=0, until=1000)
    found = verdict(story)
    assert found.evidence[0]["what"] == "From the start: granted after 0.000 s."


def test_of_two_locks_one_that_is_dead_after_the_heal_breaks_the_promise(story):
    healed_at_5000(story)
    story.grant(1, "h", asked=5000, at=5100, until=6000, lock="orders-1")
    asks(story, 5000, 9000, lock="orders-2")
    found = verdict(story)
    assert found.valid is False
    assert found.evidence[0]["lock"] == "orders-2"


def test_of_two_locks_one_without_a_request_after_the_heal_is_named(story):
    story.grant(1, "h1", at=10, until=1000, lock="orders-2")
    story.release(1, "h1", at=20, lock="orders-2")
    cut(story, 100, 5000, *SERVERS)
    story.grant(1, "h2", asked=5000, at=5100, until=6000, lock="orders-1")
    found = verdict(story)
    assert found.valid is True
    assert found.summary.endswith(
        " Not tested: after the last fault was healed (orders-2), the end of a lease."
    )


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


def test_promises_that_nothing_put_to_the_test_are_named(story):
    story.grant(1, "h", asked=0, at=100, until=1100)
    promises = {"minority": True, "fifo": True, "one_wakeup": True}
    found = verdict(story, servers=SERVERS, promises=promises)
    assert found.valid is True
    assert found.details["untested"] == ["minority", "fifo", "one_wakeup", LEASE]
    assert found.summary.endswith(" Not tested: minority, fifo, one_wakeup, the end of a lease.")


def test_a_history_without_requests_is_unknown(story):
    clocks = {"client-1": {"bound_ns": 4 * MS}}
    assert verdict(story, clocks=clocks).valid == "unknown"
    story.read(1, 0, None, 0)
    assert verdict(story).valid == "unknown"


def test_the_end_of_a_lease_is_tested_by_a_grant_after_a_hold_that_was_not_released(story):
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", asked=100, at=1100, until=2100)
    found = verdict(story)
    assert found.details["leases"] == 1
    assert found.summary == "The lock became available every time; the longest wait was 0.000 s."


def test_a_shared_grant_beside_a_dead_reader_tests_no_end_of_a_lease(story):
    story.grant(1, "h1", at=0, until=1000, shared=True)
    story.call(1, "read", 100, None, {"resource": "account"})
    story.killed(1, 200, "read")
    story.grant(2, "h2", at=300, until=1300, shared=True)
    story.release(2, "h2", at=400)
    assert LEASE in verdict(story).details["untested"]
    story.grant(3, "h3", asked=500, at=1100, until=2100)
    assert LEASE not in verdict(story).details["untested"]
