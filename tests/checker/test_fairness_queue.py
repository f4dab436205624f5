"""A client keeps its place in the queue until it gives up, dies or loses its session."""

from __future__ import annotations

import pytest

from fencepost.checker.history.history import History, Op
from fencepost.checker.liveness import liveness
from tests.checker.fairness_stories import QUEUE, busy, held, known, queue, served, turn, waits


def test_a_client_that_waits_in_calm_and_gives_up_while_later_ones_are_served_was_overtaken(story):
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


def test_so_was_a_client_whose_request_has_an_unknown_outcome(story):
    waits(story, 9, 0, 30_000, type="info", error=("timeout", "-"))
    served(story, 1000, 5000)
    assert queue(story).valid is False


@pytest.mark.parametrize(("done", "valid"), [(1501, True), (1502, False)])
def test_a_client_that_gives_up_may_have_left_the_queue_half_a_second_before(story, done, valid):
    waits(story, 9, 0, done)
    turn(story, 1, "a", 1000, 1001)
    assert queue(story).valid is valid


def test_a_client_that_died_in_its_acquire_waits_for_nothing(story):
    waits(story, 9, 0, 30_000, type="info", error=("crashed", "-"))
    served(story, 1000, 29_000)
    assert queue(story).valid is True


@pytest.mark.parametrize("kind", ["expired", "requeued"])
def test_a_client_whose_session_ended_while_it_waited_has_lost_its_place(story, kind):
    waits(story, 9, 0, 6000)
    story.op(1400, 9, "info", "lost", {"lock": "orders", "hold": None}, [kind, "-"])
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_so_has_one_whose_session_ended_in_the_instant_in_which_it_asked(story):
    waits(story, 9, 0, 30_000)
    story.op(0, 9, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_so_has_one_whose_session_ended_in_the_instant_of_its_answer(story):
    waits(story, 9, 0, 30_000)
    story.op(30_000, 9, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).details["fifo"]["overtakings"] == 0


def test_a_hold_that_is_lost_while_its_process_waits_leaves_it_its_place(story):
    waits(story, 9, 0, 30_000)
    story.op(1400, 9, "info", "lost", {"lock": "other", "hold": "h9"}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).details["fifo"]["overtakings"] == 4


@pytest.mark.parametrize(("done", "waited"), [(500, 0), (501, 1)])
def test_a_long_wait_is_longer_than_half_a_second(story, done, waited):
    waits(story, 9, 0, done)
    assert queue(story).details["fifo"]["waited_long"] == waited


def test_so_has_one_that_learns_of_its_sessions_end_only_after_others_were_granted(story):
    waits(story, 9, 0, 30_000)
    story.op(2400, 9, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "-"])
    served(story, 1000, 5000)
    assert queue(story).details["fifo"]["overtakings"] == 0


@pytest.mark.parametrize(("takes", "valid"), [(200, False), (201, True)])
def test_where_ops_take_long_it_takes_four_of_them_to_enter_a_queue(story, takes, valid):
    waits(story, 9, 0, 3000)
    turn(story, 1, "a", 800, 801)
    story.call(2, "read", 900, 900 + takes, {"resource": "account"})
    assert queue(story).valid is valid


@pytest.mark.parametrize(("takes", "valid"), [(200, False), (201, True)])
def test_the_same_holds_if_a_grant_without_a_holder_takes_long(story, takes, valid):
    """ZooKeeper's clients took 0.4 s to connect, on a machine with a load of 14; so do these."""
    turn(story, 2, "first", 0, takes)
    turn(story, 1, "later", 1300, 1301)
    waits(story, 9, 500, 3000)
    assert queue(story).valid is valid


@pytest.mark.parametrize(("released", "valid"), [(100, True), (101, False)])
def test_how_long_a_grant_took_that_waited_for_a_holder_says_nothing(story, released, valid):
    busy(story, released)
    turn(story, 2, "next", 100, 400)
    turn(story, 1, "later", 1300, 1301)
    waits(story, 9, 500, 3000)
    assert queue(story).valid is valid


def test_a_grant_of_another_lock_does_not_block_it_either(story):
    story.grant(3, "o", asked=0, at=0, until=5000, lock="other")
    turn(story, 2, "first", 100, 400)
    turn(story, 1, "later", 1300, 1301)
    waits(story, 9, 500, 3000)
    assert queue(story).valid is True


def test_a_holder_blocks_until_it_releases_even_if_another_held_the_lock_meanwhile(story):
    held(story, 7, "long", 0, 0, 2000, shared=True)
    held(story, 8, "short", 10, 11, 12, shared=True)
    turn(story, 2, "next", 100, 400)
    turn(story, 1, "later", 1300, 1301)
    waits(story, 9, 500, 3000)
    assert queue(story).valid is False


@pytest.mark.parametrize("type", ["info", "fail"])
def test_how_long_an_op_took_that_was_not_answered_says_nothing(story, type):
    waits(story, 9, 0, 3000)
    turn(story, 1, "a", 800, 801)
    value = {"resource": "account"}
    story.call(2, "read", 900, 1200, value, type=type, error=["timeout", "-"])
    assert queue(story).valid is False


def test_a_client_that_met_a_fault_does_not_count_either(story):
    waits(story, 9, 0, 1700)
    turn(story, 1, "a", 800, 801)
    story.call(2, "read", 2000, 2500, {"resource": "account"})
    story.fault("partition", 2100, 2200, ["redis-1"])
    assert queue(story).valid is False


@pytest.mark.parametrize(("later", "valid"), [(500, False), (499, True)])
def test_a_client_is_queued_after_half_a_second_of_asking(story, later, valid):
    busy(story, 900)
    turn(story, 0, "a", 0, 2000)
    turn(story, 1, "b", later, 1000)
    assert queue(story).valid is valid


def test_a_late_client_hides_no_earlier_one(story):
    """The first waiting client may still be starting, and proves nothing."""
    busy(story, 2500)
    waits(story, 8, 100, 9000)
    turn(story, 9, "before", -20, -10)
    waits(story, 9, 200, 9000)
    turn(story, 1, "a", 3000, 3001)
    found = liveness(story.history(), QUEUE)
    assert found.valid is False
    assert "before client-9 (process 9)" in found.summary


def test_the_fault_that_ended_last_decides(story):
    moved = 9000
    turn(story, 0, "a", moved, moved + 2000)
    turn(story, 1, "b", moved + 900, moved + 1000)
    story.fault("clock", moved - 8000, moved - 7900, ["redis-1"])
    story.fault("clock", moved + 100, moved + 200, ["redis-2"])
    assert queue(story).valid is True


# A client that was never granted anything may still be starting.


@pytest.mark.parametrize(("later", "valid"), [(5000, False), (4999, True)])
def test_a_client_that_was_never_granted_anything_is_queued_after_ten_times_as_long(
    story, later, valid
):
    waits(story, 9, 0, 9000)
    turn(story, 1, "a", later, later + 1)
    assert liveness(story.history(), QUEUE).valid is valid


@pytest.mark.parametrize(("done", "waited"), [(5000, 0), (5001, 1)])
def test_ten_times_as_long_is_a_long_wait_for_it(story, done, waited):
    waits(story, 9, 0, done)
    assert liveness(story.history(), QUEUE).details["fifo"]["waited_long"] == waited


def test_one_that_is_starved_from_its_first_acquire_on_was_overtaken(story):
    waits(story, 9, 0, 30_000)
    served(story, 1000, 29_000)
    found = liveness(story.history(), QUEUE)
    assert found.valid is False
    assert found.details["fifo"]["overtakings"] == 24


@pytest.mark.parametrize(("process", "valid"), [(9, False), (8, True)])
def test_it_is_its_own_grants_that_count(story, process, valid):
    turn(story, process, "before", 0, 1)
    waits(story, 9, 1000, 5000)
    turn(story, 1, "a", 3000, 3001)
    assert liveness(story.history(), QUEUE).valid is valid


def test_a_refusal_does_not(story):
    waits(story, 9, 0, 1)
    waits(story, 9, 1000, 5000)
    turn(story, 1, "a", 3000, 3001)
    assert liveness(story.history(), QUEUE).valid is True


def test_a_later_grant_does_not_count_either(story):
    turn(story, 9, "late", 1000, 4000)
    turn(story, 1, "a", 3000, 3001)
    turn(story, 9, "later", 4500, 4501)
    assert liveness(story.history(), QUEUE).valid is True


def test_locks_have_queues_of_their_own(story):
    waits(story, 9, 0, 3000, lock="other")
    served(story, 1000, 5000)
    assert queue(story).valid is True


def test_an_overtaking_is_seen_behind_a_client_that_has_waited_since_before_a_fault(story):
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
        (1000, 1001, False),  # it starts when the later one is granted
        (999, 1001, True),
        (-900, -500, False),
        (-900, -450, True),  # ended for as long as it was on
        (-100, -51, False),
        (-100, -50, True),
    ],
)
def test_calm_needs_the_end_of_each_fault_for_as_long_as_the_fault_was_on(story, start, end, valid):
    """One client asks at 0 and another at 0.9 s; the latter is granted the lock first, at 1 s."""
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


@pytest.mark.parametrize(("paused", "valid"), [(1599, True), (1600, False), (1700, False)])
def test_a_client_paused_while_another_reader_is_granted_the_lock_may_have_been_granted_it_too(
    story, paused, valid
):
    """Its session ended in the pause, and it learned of nothing but that."""
    waits(story, 9, 0, 3000, mode="shared", error=("not-granted", "its session ended"))
    held(story, 3, "r", 1000, 1100, 1200, shared=True)
    story.fault("pause", paused, 2900, ["client-9"])
    assert (queue(story).details["fifo"]["overtakings"] == 0) is valid


@pytest.mark.parametrize(
    ("node", "servers", "valid"),
    [
        ("storage", ["redis-1"], False),
        ("redis-1", ["redis-1"], True),
        ("client-2", ["redis-1"], True),
        ("storage", [], True),
    ],
)
def test_a_fault_of_a_node_that_neither_serves_nor_asks_disturbs_no_order(
    story, node, servers, valid
):
    busy(story, 20_000)
    waits(story, 2, 1000, None)
    turn(story, 3, "late", 12_000, 21_000)
    story.fault("cpu", 500, 19_000, [node])
    assert (queue(story, servers=servers).valid is not False) is valid


@pytest.mark.parametrize(("node", "valid"), [("client-4", False), (None, True)])
def test_a_client_whose_node_is_not_known_may_have_that_fault(story, node, valid):
    busy(story, 20_000)
    waits(story, 2, 1000, None)
    turn(story, 3, "late", 12_000, 21_000)
    turn(story, 4, "other", 25_000, 25_001)
    story.fault("cpu", 500, 19_000, ["storage"])
    known(story)
    ops = [
        Op(
            *(o.index, o.time, o.process, o.type, o.f, o.value, o.error),
            node if o.process == 4 else o.node,
        )
        for o in story.history()
    ]
    found = liveness(History(ops), {**QUEUE, "servers": ["redis-1"]})
    assert (found.valid is not False) is valid
