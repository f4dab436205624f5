"""After a holder dies its lock comes back: which deaths start a wait, and when."""

from __future__ import annotations

import pytest

from fencepost.checker.liveness import liveness
from tests.checker.liveness_stories import (
    LEASE,
    LIMIT,
    MINORITY,
    SERVERS,
    STUCK,
    TTL,
    asks,
    asks_in_vain,
    cut,
    dies_with_the_lock,
    limits,
    verdict,
)


def test_after_a_holder_s_death_the_lock_is_granted_when_its_lease_expires(story):
    dies_with_the_lock(story)
    asks_in_vain(story, 100, 1000)
    story.grant(2, "h2", at=1050.1, until=2050)
    found = verdict(story)
    assert found.valid is True
    assert found.details["after_deaths_s"] == [0.95]
    assert [row["what"] for row in found.evidence] == [
        "From the start: granted after 0.000 s.",
        "After client-1 (process 1) disappeared with hold h1 at 0.100 s: granted after 0.950 s.",
    ]


def test_a_lock_that_stays_taken_after_its_holder_s_death_is_dead(story):
    dies_with_the_lock(story)
    asks_in_vain(story, 100, LIMIT + 200)
    found = verdict(story)
    assert found.valid is False
    assert found.summary == (
        "After client-1 (process 1) disappeared with hold h1 at 0.100 s: the lock should have "
        "been granted by 3.000 s, but never was."
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


def test_a_kill_of_a_client_without_an_end_ends_in_its_own_instant(story):
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


def test_a_holder_whose_lease_expired_before_it_died_leaves_nothing_to_wait_for(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.fault("kill", TTL, 2000, ["client-1"], processes=[1])
    story.grant(2, "h2", at=2100, until=3100)
    assert verdict(story).details["waits"] == 1


def test_a_holder_s_death_without_later_requests_is_named_and_does_not_fail_the_lock(story):
    story.grant(2, "h0", at=0, until=1000)
    story.release(2, "h0", at=10)
    story.grant(1, "h1", at=20, until=1020)
    story.call(1, "read", 100, None, {"resource": "account"})
    story.killed(1, 200, "read")
    story.read(2, 9000, None, 0)
    found = verdict(story)
    assert found.valid is True
    assert found.details["untested"] == ["after 1 holder that disappeared", LEASE]


def test_holders_that_went_one_after_the_other_are_each_waited_for(story):
    for number in range(300):
        at = number * 100
        story.grant(number, f"h{number}", at=at, until=at + TTL)
        story.write(number, at + 10, f"v{number}", 0, type="info")
    for number in range(10):
        story.fault("power", number * 3000, number * 3000 + 500, SERVERS)
    history = story.history()
    assert liveness(history, MINORITY).valid is True


@pytest.mark.parametrize(("ends_with", "valid"), [("lease", False), ("connection", True)])
def test_a_hold_that_ends_with_its_connection_may_outlast_its_deadline(story, ends_with, valid):
    story.grant(1, "h1", at=0, until=1000)
    asks_in_vain(story, 100, STUCK)
    story.release(1, "h1", at=STUCK + 200)
    story.grant(2, "h2", at=STUCK + 300, until=STUCK + 1300)
    assert verdict(story, lock={"ends_with": ends_with}).valid is valid


def test_a_holder_that_is_gone_at_once_is_not_granted_the_lock_after_itself(story):
    story.grant(1, "h1", asked=50, at=100, until=1100)
    story.call(1, "close", 100, 101, {})
    story.grant(2, "h2", at=1150, until=2150)
    assert verdict(story).details["after_deaths_s"] == [1.05]


@pytest.mark.parametrize(("until", "valid"), [(TTL, True), (TTL + 0.001, "unknown")])
def test_a_client_that_stops_asking_when_the_lock_is_due_does_not_wait_for_it(story, until, valid):
    dies_with_the_lock(story)
    asks(story, 200, until)
    story.read(9, TTL + 100, None, 0)
    assert verdict(story).valid == valid
