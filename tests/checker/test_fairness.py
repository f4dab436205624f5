"""Order of grants and wakeups: promises of queueing locks, told from the history alone."""

from __future__ import annotations

import pytest
from histories import Story

from checker.liveness import liveness

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
    assert "had been waiting since 0.000 s" in found.summary


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
    assert "woken 6 times for 4 requests" in found.summary
    assert liveness(story.history(), {}).valid is True


def test_one_wakeup_for_each_request_keeps_it(story):
    for number in range(4):
        turn(story, number, f"h{number}", number * 10, number * 10 + 5, wakeups=1)
    found = liveness(story.history(), ONE)
    assert found.valid is True
    assert found.details["wakeups"] == {"in_all": 4, "acquires": 4}
