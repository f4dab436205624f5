"""Order of grants and wakeups: promises of queueing locks, told from the history alone."""

from __future__ import annotations

import pytest

from fencepost.checker.liveness import liveness
from histories import MS, Story

QUEUE = {"promises": {"fifo": True}}
ONE = {"promises": {"one_wakeup": True}}


@pytest.fixture
def story():
    return Story()


def turn(story, process, hold, asked, granted, wakeups=None):
    value = {"lock": "orders", "ttl": 10**9}
    got = {"hold": hold, "token": None, "deadline": None}
    if wakeups is not None:
        got["wakeups"] = wakeups
    story.call(process, "acquire", asked, granted, value, got)
    story.release(process, hold, granted + 1)


def overtaken(story):
    turn(story, 0, "a", 0, 2000)
    turn(story, 1, "b", 900, 1000)


def test_an_overtaking_breaks_a_promise_of_order(story):
    overtaken(story)
    found = liveness(story.history(), QUEUE)
    assert found.valid is False
    assert found.evidence == [
        {
            "what": (
                "client-1 (process 1) asked at 0.900 s and was granted the lock at 1.000 s, "
                "before client-0 (process 0), which had been waiting since 0.000 s."
            ),
            "time_ns": 1000 * MS,
            "valid": False,
            "ops": [1, 0],
        }
    ]


def test_without_such_a_promise_it_is_only_counted(story):
    overtaken(story)
    found = liveness(story.history(), {})
    assert found.valid is True
    assert found.details["fifo"] == {"waited_long": 1, "overtakings": 1}


def test_who_asked_a_moment_later_may_have_come_first(story):
    turn(story, 0, "a", 0, 2000)
    turn(story, 1, "b", 400, 1000)
    assert liveness(story.history(), QUEUE).valid is True


def test_a_fault_meanwhile_excuses_it(story):
    overtaken(story)
    story.fault("partition", 100, 200, ["redis-1"])
    assert liveness(story.history(), QUEUE).valid is True


def test_grants_in_the_order_of_asking_keep_it(story):
    turn(story, 0, "a", 0, 1000)
    turn(story, 1, "b", 600, 2000)
    turn(story, 2, "c", 1200, 3000)
    found = liveness(story.history(), QUEUE)
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
                "Waiters were woken 6 times for 4 requests, 1.5 for each: the end of one hold or "
                "wait wakes a herd."
            ),
            "time_ns": 0,
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
    assert found.details["untested"] == []


def waits(
    story, process, asked, done, lock="orders", type="fail", error=("timeout", "gave up"), **more
):
    """An acquire that is never granted; `done` None: it never returns."""
    value = {"lock": lock, "ttl": 10**9, **more}
    story.call(process, "acquire", asked, done, value, type=type, error=list(error))


def served(story, start, end, step=1000):
    """One client that asks each second, and is granted the lock at once."""
    for number, at in enumerate(range(start, end, step)):
        turn(story, 1, f"s{number}", at, at + 1)


def held(
    story, process, hold, asked, granted, released, *, shared=False, token=None, deadline=None
):
    value = {"lock": "orders", "ttl": 10**9} | ({"mode": "shared"} if shared else {})
    got = {"hold": hold, "token": token, "deadline": deadline and deadline * MS}
    story.call(process, "acquire", asked, granted, value, got)
    story.release(process, hold, released)


def queue(story, **test):
    return liveness(story.history(), QUEUE | test)


# Who is in the queue, and until when.


def test_one_who_waits_in_calm_and_gives_up_while_later_ones_are_served_was_overtaken(story):
    waits(story, 9, 0, 30_000)
    served(story, 1000, 29_000)
    found = queue(story)
    assert found.valid is False
    assert found.summary == (
        "client-1 (process 1) asked at 1.000 s and was granted the lock at 1.001 s, before "
        "client-9 (process 9), which had been waiting since 0.000 s."
    )
    assert found.details["fifo"]["overtakings"] == 28


def test_so_was_one_whose_acquire_never_returned(story):
    waits(story, 9, 0, None)
    served(story, 1000, 5000)
    assert queue(story).valid is False


def test_so_was_one_that_was_told_nothing_certain(story):
    waits(story, 9, 0, 30_000, type="info", error=("timeout", "-"))
    served(story, 1000, 5000)
    assert queue(story).valid is False


@pytest.mark.parametrize(("done", "valid"), [(1501, True), (1502, False)])
def test_who_gives_up_may_have_left_the_queue_half_a_second_before(story, done, valid):
    waits(story, 9, 0, done)
    turn(story, 1, "a", 1000, 1001)
    assert queue(story).valid is valid


def test_a_client_that_died_in_its_acquire_waits_for_nothing(story):
    waits(story, 9, 0, 30_000, type="info", error=("crashed", "-"))
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_a_client_whose_session_ended_while_it_waited_has_lost_its_place(story):
    waits(story, 9, 0, 30_000)
    story.op(1400, 9, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_so_has_one_whose_session_ended_in_the_instant_in_which_it_asked(story):
    waits(story, 9, 0, 30_000)
    story.op(0, 9, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_a_hold_that_is_lost_while_its_process_waits_leaves_it_its_place(story):
    waits(story, 9, 0, 30_000)
    story.op(1400, 9, "info", "lost", {"lock": "other", "hold": "h9"}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).details["fifo"]["overtakings"] == 4


@pytest.mark.parametrize(("done", "waited"), [(500, 0), (501, 1)])
def test_a_long_wait_is_longer_than_half_a_second(story, done, waited):
    waits(story, 9, 0, done)
    assert queue(story).details["fifo"]["waited_long"] == waited


def test_until_then_it_had_its_place(story):
    waits(story, 9, 0, 30_000)
    story.op(2400, 9, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).details["fifo"]["overtakings"] == 1


@pytest.mark.parametrize(("later", "valid"), [(500, False), (499, True)])
def test_half_a_second_of_asking_puts_one_into_the_queue(story, later, valid):
    turn(story, 0, "a", 0, 2000)
    turn(story, 1, "b", later, 1000)
    assert queue(story).valid is valid


def test_locks_have_queues_of_their_own(story):
    waits(story, 9, 0, 3000, lock="other")
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_an_overtaking_is_seen_behind_one_who_has_waited_since_before_a_fault(story):
    waits(story, 4, 0, None)
    story.fault("partition", 1000, 2000, ["redis-1"])
    held(story, 1, "h", 2500, 2600, 29_900)
    turn(story, 5, "five", 20_000, 40_000)
    turn(story, 6, "six", 25_000, 30_000)
    found = queue(story)
    assert found.valid is False
    assert "client-6 (process 6) asked at 25.000 s" in found.summary
    assert found.details["fifo"]["overtakings"] == 1


# Calm.


@pytest.mark.parametrize(
    ("start", "end", "valid"),
    [
        (1000, 1001, False),  # it begins when the later one is granted
        (999, 1001, True),
        (-900, -500, False),
        (-900, -450, True),  # over for as long as it was on
        (-100, -51, False),
        (-100, -50, True),
    ],
)
def test_calm_is_without_a_fault_and_without_one_that_was_over_for_less_long_than_it_was_on(
    story, start, end, valid
):
    """One asks at 0 and another at 0.9 s; this one is granted the lock first, at 1 s."""
    moved = 5000
    turn(story, 0, "a", moved, moved + 2000)
    turn(story, 1, "b", moved + 900, moved + 1000)
    story.fault("clock", moved + start, moved + end, ["redis-1"])
    assert queue(story).valid is valid


def test_a_fault_that_was_never_healed_leaves_no_calm(story):
    story.fault("clock", 0, None, ["redis-1"])
    waits(story, 9, 100, 30_000)
    served(story, 1000, 5000)
    assert queue(story).details["fifo"]["overtakings"] == 0


def test_the_longer_of_two_faults_decides(story):
    moved = 9000
    turn(story, 0, "a", moved, moved + 2000)
    turn(story, 1, "b", moved + 900, moved + 1000)
    story.fault("clock", moved - 3000, moved - 1000, ["redis-1"])
    story.fault("clock", moved - 2500, moved - 2400, ["redis-2"])
    assert queue(story).valid is True


# Who was granted first.


def test_two_shared_grants_that_arrive_in_another_order_are_no_overtaking(story):
    held(story, 1, "w", 0, 1, 5000)
    held(story, 3, "r2", 1000, 5001, 5200, shared=True)
    held(story, 2, "r1", 100, 5300, 5400, shared=True)
    found = queue(story)
    assert found.valid is True
    assert found.details["untested"] == ["fifo"]


def one_between(story, granted, released, shared=False):
    """A reader passes one that asked 0.6 s before it; a third client is granted the lock too."""
    held(story, 3, "r2", 700, 1100, 1200, shared=True)
    held(story, 4, "w", 400, granted, released, shared=shared)
    held(story, 2, "r1", 100, 1500, 1600, shared=True)


@pytest.mark.parametrize(("granted", "released"), [(1200, 1300), (1300, 1500), (1500, 1500)])
def test_two_shared_grants_with_an_exclusive_one_between_them_are(story, granted, released):
    one_between(story, granted, released)
    found = queue(story)
    assert found.valid is False
    assert found.details["fifo"]["overtakings"] == 1


@pytest.mark.parametrize(
    ("granted", "released"), [(1050, 1090), (1150, 1300), (1300, 1501), (1600, 1700)]
)
def test_an_exclusive_grant_that_may_not_lie_between_them_separates_nothing(
    story, granted, released
):
    one_between(story, granted, released)
    assert queue(story).valid is True


def test_a_shared_grant_between_them_separates_nothing(story):
    one_between(story, 1300, 1400, shared=True)
    assert queue(story).valid is True


def test_an_exclusive_grant_whose_token_is_lower_came_before_both(story):
    held(story, 4, "w", 90, 1300, 1400, token=1)
    held(story, 3, "r2", 1000, 1100, 1200, shared=True, token=2)
    held(story, 2, "r1", 100, 1500, 1600, shared=True, token=2)
    assert queue(story).valid is True


def test_a_shared_waiter_that_gives_up_was_overtaken_by_a_shared_grant(story):
    waits(story, 9, 0, 30_000, mode="shared")
    held(story, 3, "r2", 1000, 1100, 1200, shared=True)
    assert queue(story).valid is False


def test_a_reader_that_passes_a_writer_overtakes_it(story):
    held(story, 3, "r", 1000, 1100, 1200, shared=True)
    held(story, 2, "w", 100, 1500, 1600)
    assert queue(story).valid is False


@pytest.mark.parametrize(("tokens", "valid"), [((1, 2), False), ((2, 1), True), ((2, None), False)])
def test_tokens_tell_who_was_granted_the_lock_first(story, tokens, valid):
    held(story, 1, "b", 1000, 1100, 1200, token=tokens[0])
    held(story, 0, "a", 0, 1500, 1600, token=tokens[1])
    assert queue(story).valid is valid


def test_a_grant_that_arrives_while_another_s_hold_goes_on_may_have_come_first(story):
    held(story, 1, "b", 1000, 1100, 1700)
    held(story, 0, "a", 0, 1500, 1600)
    assert queue(story).valid is True


def test_a_grant_whose_lease_is_over_when_it_arrives_may_have_come_first(story):
    held(story, 1, "b", 1000, 1100, 1200)
    held(story, 0, "a", 0, 1500, 1600, deadline=1100)
    assert queue(story).valid is True


def test_a_grant_whose_lease_was_not_over_when_the_other_arrived_did_not(story):
    held(story, 1, "b", 1000, 1100, 1200)
    held(story, 0, "a", 0, 1500, 1600, deadline=1101)
    assert queue(story).valid is False


@pytest.mark.parametrize(("asked", "valid"), [(508, False), (507, True)])
def test_clock_bounds_between_hosts_count(story, asked, valid):
    held(story, 1, "b", asked, 1100, 1200)
    held(story, 0, "a", 0, 1500, 1600)
    clocks = {f"client-{number}": {"bound_ns": 4 * MS} for number in (0, 1)}
    assert queue(story, clocks=clocks).valid is valid


@pytest.mark.parametrize(("done", "valid"), [(1509, True), (1510, False)])
def test_clock_bounds_count_at_the_end_of_a_wait_as_well(story, done, valid):
    waits(story, 9, 0, done)
    turn(story, 1, "a", 1000, 1001)
    clocks = {f"client-{number}": {"bound_ns": 4 * MS} for number in (1, 9)}
    assert queue(story, clocks=clocks).valid is valid


@pytest.mark.parametrize(("granted", "valid"), [(1208, False), (1207, True)])
def test_clock_bounds_count_between_the_end_of_a_hold_and_the_next_grant(story, granted, valid):
    held(story, 1, "b", 1000, 1100, 1200)
    held(story, 0, "a", 0, granted, 1600)
    clocks = {f"client-{number}": {"bound_ns": 4 * MS} for number in (0, 1)}
    assert queue(story, clocks=clocks).valid is valid


@pytest.mark.parametrize(("deadline", "valid"), [(1109, False), (1108, True)])
def test_clock_bounds_count_between_a_grant_and_the_end_of_the_other_s_lease(
    story, deadline, valid
):
    held(story, 1, "b", 1000, 1100, 1200)
    held(story, 0, "a", 0, 1500, 1600, deadline=deadline)
    clocks = {f"client-{number}": {"bound_ns": 4 * MS} for number in (0, 1)}
    assert queue(story, clocks=clocks).valid is valid


def test_tokens_that_fell_within_the_bounds_of_clocks_still_tell_who_was_first(story):
    held(story, 1, "b", 1000, 1100, 1200, token=2)
    held(story, 0, "a", 0, 1500, 1600, token=1)
    held(story, 2, "x", 1700, 1701, 1702, token=9)
    held(story, 3, "y", 1703, 1704, 1705, token=8)
    clocks = {f"client-{number}": {"bound_ns": 4 * MS} for number in (2, 3)}
    assert queue(story).valid is False
    assert queue(story, clocks=clocks).valid is True


def test_one_who_is_granted_the_lock_a_nanosecond_later_was_overtaken(story):
    held(story, 1, "b", 1000, 1100, 1100)
    held(story, 0, "a", 0, 1100.000001, 1600)
    assert queue(story).valid is False


# What was put to the test.


def test_a_later_one_that_waits_in_turn_puts_the_order_to_the_test(story):
    turn(story, 0, "a", 0, 1000)
    turn(story, 1, "b", 600, 2000)
    assert queue(story).details["untested"] == []


def test_so_does_a_writer_that_waits_in_turn_behind_a_reader(story):
    held(story, 3, "r", 0, 1000, 1100, shared=True)
    held(story, 2, "w", 600, 2000, 2100)
    assert queue(story).details["untested"] == []


def test_one_who_gives_up_in_the_instant_of_the_grant_does_not(story):
    turn(story, 1, "a", 0, 1000)
    waits(story, 9, 600, 1000)
    found = queue(story)
    assert (found.valid, found.details["untested"]) == (True, ["fifo"])


def test_grants_that_nobody_waited_for_do_not(story):
    served(story, 0, 5000)
    found = queue(story)
    assert found.valid is True
    assert found.details["untested"] == ["fifo"]


def test_each_lock_s_wakeups_are_held_against_its_own_requests(story):
    for number in range(4):
        turn(story, number, f"h{number}", number * 10, number * 10 + 5, wakeups=number)
    for number in range(4, 20):
        waits(story, number, 200, 210, lock="other")
    found = liveness(story.history(), ONE)
    assert found.valid is False
    assert found.details["wakeups"] == {"in_all": 6, "acquires": 20}


def test_wakeups_of_several_locks_are_told_together(story):
    turn(story, 0, "h", 0, 5, wakeups=1)
    value = {"lock": "other", "ttl": 10**9}
    story.call(1, "acquire", 0, 5, value, {"hold": "o", "deadline": None, "wakeups": 1})
    found = liveness(story.history(), ONE)
    assert found.valid is True
    assert found.details["wakeups"] == {"in_all": 2, "acquires": 2}


def test_a_lock_that_woke_nobody_leaves_its_wakeups_untested(story):
    turn(story, 0, "h", 0, 5, wakeups=0)
    found = liveness(story.history(), ONE)
    assert found.valid is True
    assert found.details["untested"] == ["one_wakeup"]


def test_five_hundred_turns_in_order_keep_the_promise(story):
    for number in range(500):
        at = number * 20
        turn(story, number % 50, f"h{number}", at - 600, at)
    history = story.history()
    assert liveness(history, QUEUE).valid is True
