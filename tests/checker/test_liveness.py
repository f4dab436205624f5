"""The lock comes back in time, too late, never, or nobody can tell."""

from __future__ import annotations

import pytest
from histories import Story

from checker.liveness import liveness

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
    assert verdict(story).valid == "unknown"


def test_a_lock_that_nobody_asked_for_after_the_heal_is_unknown(story):
    story.grant(1, "h", at=100, until=1100)
    story.release(1, "h", at=200)
    cut(story, 300, 5000, *SERVERS)
    story.read(1, 9000, None, 0)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary == (
        "After the last fault was healed: nobody asked for long enough to tell."
    )


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
    story.grant(2, "h2", at=1050, until=2050)
    assert verdict(story).valid is True


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
