"""Queueing locks promise an order of grants and few wakeups; both are read from the history."""

from __future__ import annotations

import pytest

from fencepost.checker.liveness import liveness
from tests.checker.fairness_stories import ONE, QUEUE, busy, held, known, queue, served, turn, waits
from tests.checker.liveness_stories import LEASE
from tests.histories import MS


def overtaken(story):
    turn(story, 0, "a", 0, 2000)
    turn(story, 1, "b", 900, 1000)


def test_an_overtaking_breaks_a_promise_of_order(story):
    overtaken(story)
    found = queue(story)
    assert found.valid is False
    assert found.evidence == [
        {
            "what": (
                "client-1 (process 1) asked at 0.900 s and was granted the lock at 1.000 s, "
                "before client-0 (process 0), which had been waiting since 0.000 s."
            ),
            "time_ns": 1000 * MS,
            "valid": False,
            "ops": [9, 8],
        }
    ]


def test_without_such_a_promise_it_is_only_counted(story):
    overtaken(story)
    found = queue(story, promises={})
    assert found.valid is True
    assert found.details["fifo"] == {"waited_long": 1, "overtakings": 1}


def test_a_request_sent_a_moment_later_may_have_arrived_first(story):
    turn(story, 0, "a", 0, 2000)
    turn(story, 1, "b", 400, 1000)
    assert queue(story).valid is True


def test_a_fault_meanwhile_excuses_it(story):
    overtaken(story)
    story.fault("partition", 100, 200, ["redis-1"])
    assert queue(story).valid is True


def test_grants_in_the_order_of_asking_keep_it(story):
    busy(story, 900)
    turn(story, 0, "a", 0, 1000)
    turn(story, 1, "b", 600, 2000)
    turn(story, 2, "c", 1200, 3000)
    found = queue(story)
    assert found.valid is True
    assert found.details["fifo"] == {"waited_long": 3, "overtakings": 0}


def test_a_herd_breaks_the_promise_of_one_wakeup(story):
    for number in range(4):
        turn(story, number, f"h{number}", number * 10, number * 10 + 5, wakeups=number)
    found = liveness(story.history(), ONE)
    assert found.valid is False
    assert found.evidence == [
        {
            "what": (
                "From 0.020 s to 0.035 s waiters were woken 5 times for 2 requests, 2.5 for each: "
                "the end of one hold or wait wakes a herd of waiters."
            ),
            "time_ns": 20 * MS,
            "valid": False,
        }
    ]
    assert liveness(story.history(), {}).valid is True


def test_one_wakeup_for_each_request_keeps_it(story):
    for number in range(4):
        turn(story, number, f"h{number}", number * 10, number * 10 + 5, wakeups=1)
    found = liveness(story.history(), ONE)
    assert found.valid is True
    assert found.details["wakeups"] == {"in_all": 4, "acquires": 4}
    assert found.details["untested"] == [LEASE]


# The promises that the history tests.


def test_a_later_one_that_waits_in_turn_puts_the_order_to_the_test(story):
    busy(story, 900)
    turn(story, 0, "a", 0, 1000)
    turn(story, 1, "b", 600, 2000)
    assert queue(story).details["untested"] == [LEASE]


def test_so_does_a_writer_that_waits_in_turn_behind_a_reader(story):
    busy(story, 900)
    held(story, 3, "r", 0, 1000, 1100, shared=True)
    held(story, 2, "w", 600, 2000, 2100)
    assert queue(story).details["untested"] == [LEASE]


def test_a_request_given_up_in_the_instant_of_the_grant_does_not(story):
    turn(story, 1, "a", 0, 1000)
    waits(story, 9, 600, 1000)
    found = queue(story)
    assert (found.valid, found.details["untested"]) == (True, ["fifo", LEASE])


def test_grants_without_a_waiting_client_do_not(story):
    served(story, 0, 5000)
    found = queue(story)
    assert found.valid is True
    assert found.details["untested"] == ["fifo", LEASE]


def test_each_lock_s_wakeups_are_compared_with_its_own_requests(story):
    for number in range(4):
        turn(story, number, f"h{number}", number * 10, number * 10 + 5, wakeups=number)
    for number in range(4, 20):
        waits(story, number, 200, 210, lock="other")
    found = liveness(story.history(), ONE)
    assert found.valid is False
    assert found.details["wakeups"] == {"in_all": 6, "acquires": 20}


def test_wakeups_of_several_locks_are_reported_together(story):
    turn(story, 0, "h", 0, 5, wakeups=1)
    value = {"lock": "other", "ttl": 10**9}
    story.call(1, "acquire", 0, 5, value, {"hold": "o", "deadline": None, "wakeups": 1})
    found = liveness(story.history(), ONE)
    assert found.valid is True
    assert found.details["wakeups"] == {"in_all": 2, "acquires": 2}


@pytest.mark.parametrize(("done", "untested"), [(1000, ["fifo"]), (1001, [])])
def test_a_request_given_up_in_the_instant_of_a_grant_shows_no_order(story, done, untested):
    turn(story, 1, "b", 900, 1000)
    waits(story, 0, 0, done)
    assert queue(story).details["untested"] == [*untested, LEASE]


def test_a_lock_without_wakeups_leaves_its_wakeups_untested(story):
    turn(story, 0, "h", 0, 5, wakeups=0)
    found = liveness(story.history(), ONE)
    assert found.valid is True
    assert found.details["untested"] == ["one_wakeup", LEASE]


def test_five_hundred_turns_in_order_keep_the_promise(story):
    for number in range(500):
        at = number * 20
        turn(story, number % 50, f"h{number}", at - 600, at)
    assert queue(story).valid is True


@pytest.mark.parametrize(("released", "valid"), [(20_002, True), (19_999, False)])
def test_a_second_grant_to_the_holder_passes_nobody(story, released, valid):
    held(story, 2, "first", 0, 1, released)
    waits(story, 9, 5000, 22_000)
    turn(story, 2, "second", 20_000, 20_001)
    assert queue(story, promises={"fifo": True, "reentrant": True}).valid is valid
    assert queue(story).valid is valid


@pytest.mark.parametrize(
    ("node", "valid"),
    [("client-5", False), ("client-9", True), ("client-1", True), ("client-6", False)],
)
def test_a_fault_of_a_client_that_asks_for_nothing_disturbs_no_order(story, node, valid):
    busy(story, 8000)
    turn(story, 9, "first", 0, 9000)
    turn(story, 1, "second", 5000, 8500)
    known(story)
    story.read(5, 100, None, 0)
    story.fault("pause", 4000, 4500, [node])
    found = liveness(story.history(), {**QUEUE, "servers": ["redis-1"]})
    assert found.valid is valid
    # Without the servers' names, it may be a server.
    assert liveness(story.history(), QUEUE).valid is True


@pytest.mark.parametrize(("asked", "untested"), [(500, []), (1500, ["reentrant"])])
def test_a_lock_that_was_not_granted_to_its_holder_again_is_not_tested_as_reentrant(
    story, asked, untested
):
    held(story, 2, "first", 0, 1, 1000)
    turn(story, 2, "second", asked, asked + 1)
    found = liveness(story.history(), {"promises": {"reentrant": True}})
    assert [name for name in found.details["untested"] if name == "reentrant"] == untested
